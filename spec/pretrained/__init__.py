"""Drafters shipped with the package: one folder each, named after the model and the kind of drafter.

Each config holds, beside what its reader needs, `trained_for` and how it was made: `recipe`, with the `command`, its
`seed`, the `date` and the `data`.
"""

from __future__ import annotations

from pathlib import Path


def folders() -> list[Path]:
    """In the order of their names."""
    here = Path(__file__).parent
    return sorted(path.parent for path in here.glob("*/config.json"))
