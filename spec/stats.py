"""How often guesses are right: a drafter's own estimate, corrected by what became of such guesses lately.

Three corrections are multiplied, each learnt on top of the ones before: of the drafter as a whole, of its guesses of
one depth, rank and confidence, and of this sequence. A correction starts at 1 and moves as evidence comes in, so the
sequence leans on what all sequences share, and that leans on the drafter's estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from .merge import Vote

_BINS = 10  # of the estimate
_DEEPEST = 4  # guesses deeper than this share a correction
_LAST_RANK = 2  # so do siblings after the third

# Weight of "the estimate is right", in hits expected, and what is left of an observation after the next one.
_SHARED = (4.0, 0.995)
_OWN = (2.0, 0.98)

_CERTAIN = 0.999  # nothing is


class Ratio:
    """Seen over expected, shrunk towards 1 while little is known; old observations fade.

    prior: as much as was expected before anything was seen, and came. decay: per observation.
    """

    __slots__ = ("_decay", "_expected", "_prior", "_seen", "value")

    def __init__(self, prior: float, decay: float) -> None:
        self._prior, self._decay = prior, decay
        self._seen = self._expected = 0.0
        self.value = 1.0

    def add(self, seen: float, expected: float) -> None:
        self._seen = self._seen * self._decay + seen
        self._expected = self._expected * self._decay + expected
        self.value = (self._prior + self._seen) / (self._prior + self._expected)


_Key = TypeVar("_Key")
_Cell = tuple[str, int, int, int]  # source, depth, rank, bin of the estimate


class Acceptance:
    """Calibrated acceptance, learnt online, of each drafter and of each set of drafters that agree."""

    def __init__(self) -> None:
        self._sources: dict[str, Ratio] = {}
        self._cells: dict[_Cell, Ratio] = {}
        self._own: dict[str, dict[str, Ratio]] = {}

    def probability(self, seq_id: str, depth: int, votes: tuple[Vote, ...]) -> float:
        """How often such a guess is right, given that its parent is. depth: 1 for a guess right below the root.

        Drafters that agree are taken for independent at first, 1 - prod(1 - p); how often they are right together is
        then learnt under their joint name, as if it were a drafter's.
        """
        if len(votes) == 1:
            return self._corrected(seq_id, depth, votes[0])
        return self._corrected(seq_id, depth, self._joint(seq_id, depth, votes))

    def observe(self, seq_id: str, depth: int, votes: tuple[Vote, ...], accepted: bool) -> None:
        """What became of one guess whose parent was right."""
        if len(votes) > 1:
            self._learn(seq_id, depth, self._joint(seq_id, depth, votes), accepted)
        for vote in votes:
            self._learn(seq_id, depth, vote, accepted)

    def forget(self, seq_id: str) -> None:
        """The sequence is gone; what it taught about the drafters stays."""
        self._own.pop(seq_id, None)

    def _joint(self, seq_id: str, depth: int, votes: tuple[Vote, ...]) -> Vote:
        doubt, rank = 1.0, votes[0].rank
        for vote in votes:
            doubt *= 1.0 - self._corrected(seq_id, depth, vote)
            rank = min(rank, vote.rank)
        return Vote(label(votes), rank, 1.0 - doubt)

    def _corrected(self, seq_id: str, depth: int, vote: Vote) -> float:
        # Asked for every guess of every step: conditions take a third of the time of calls of `min`.
        name, rank, p = vote
        if (source := self._sources.get(name)) is not None:
            cell = self._cells.get(_cell(name, depth, rank, p))
            p *= source.value
            if cell is not None:
                p = (p if p < _CERTAIN else _CERTAIN) * cell.value
            if (own := self._own.get(seq_id)) is not None and (ratio := own.get(name)) is not None:
                p = (p if p < _CERTAIN else _CERTAIN) * ratio.value
        return p if p < _CERTAIN else _CERTAIN

    def _learn(self, seq_id: str, depth: int, vote: Vote, accepted: bool) -> None:
        name, rank, estimate = vote
        own = self._own.get(seq_id)
        if own is None:
            own = self._own[seq_id] = {}
        p = min(estimate, _CERTAIN)
        for ratio in (
            _of(self._sources, name, _SHARED),
            _of(self._cells, _cell(name, depth, rank, estimate), _SHARED),
            _of(own, name, _OWN),
        ):
            corrected = p * ratio.value
            ratio.add(accepted, p)
            p = corrected if corrected < _CERTAIN else _CERTAIN


def label(votes: Iterable[Vote]) -> str:
    """The drafters behind one guess or several, as in "draft+suffix", whoever was asked first."""
    return "+".join(sorted({vote.source for vote in votes}))


def _cell(source: str, depth: int, rank: int, estimate: float) -> _Cell:
    place = int(estimate * _BINS)
    return (
        source,
        depth if depth < _DEEPEST else _DEEPEST,
        rank if rank < _LAST_RANK else _LAST_RANK,
        place if place < _BINS else _BINS - 1,
    )


def _of(ratios: dict[_Key, Ratio], key: _Key, shape: tuple[float, float]) -> Ratio:
    ratio = ratios.get(key)
    if ratio is None:
        ratio = ratios[key] = Ratio(*shape)
    return ratio
