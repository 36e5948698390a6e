"""How a long fetch tells what it is doing."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[str, int, int], None]
"""report(stage, done, total): bytes done of a stage; a total of 0 is unknown."""


def quiet(stage: str, done: int, total: int) -> None:
    """Report nothing."""
