"""Drafters shipped with the package: one folder each, named after the model and the kind of drafter."""

from __future__ import annotations

from pathlib import Path


def folders() -> list[Path]:
    here = Path(__file__).parent
    return sorted(path.parent for path in here.glob("*/config.json"))
