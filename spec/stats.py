"""How often guesses are right: a drafter's own estimate, corrected by what the walk accepted lately."""

from __future__ import annotations

from collections import defaultdict

_PRIOR = 8.0  # the drafter's estimate weighs as much as this many observations
_DECAY = 0.995  # per observation of a cell: what happened some 200 guesses ago has faded
_BINS = 10  # of the estimate
_DEEPEST = 4  # guesses deeper than this share a cell


class Acceptance:
    """Calibrated acceptance by drafter, depth and the drafter's own estimate."""

    def __init__(self) -> None:
        self._cells: defaultdict[tuple[str, int, int], list[float]] = defaultdict(lambda: [0.0, 0.0])

    @staticmethod
    def _key(source: str, depth: int, estimate: float) -> tuple[str, int, int]:
        return source, min(depth, _DEEPEST), min(int(estimate * _BINS), _BINS - 1)

    def probability(self, source: str, depth: int, estimate: float) -> float:
        """How often such a guess is right, given that its parent is. depth: 1 for a guess right below the root."""
        cell = self._cells.get(self._key(source, depth, estimate))
        if cell is None:
            return estimate
        hits, trials = cell
        return (estimate * _PRIOR + hits) / (_PRIOR + trials)

    def observe(self, source: str, depth: int, estimate: float, accepted: bool) -> None:
        """One guess whose parent was accepted was verified."""
        cell = self._cells[self._key(source, depth, estimate)]
        cell[0] = cell[0] * _DECAY + accepted
        cell[1] = cell[1] * _DECAY + 1
