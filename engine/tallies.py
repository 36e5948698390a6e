"""What an engine counts in places: guesses by their depth, steps by their size."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

_DEEPEST = 16  # guesses deeper than this are counted with the last
_SIZES = 13  # places of a size: up to 1, 2, 4, … 4096, as many as a step has rows


class GuessCounts(NamedTuple):
    """[_DEEPEST] each, by depth: the first is that of guesses right below the pending token.

    steps: those that verified a guess of the depth; at the last place, once for each depth from there on.
    """

    drafted: tuple[int, ...]
    accepted: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(slots=True)
class GuessTally:
    """Guesses verified, those of them that became tokens, and the steps that reached their depth: one guess of a depth
    at most is right, so only these tell how often a depth brings a token, however wide the trees are."""

    drafted: list[int] = field(default_factory=lambda: [0] * _DEEPEST)
    accepted: list[int] = field(default_factory=lambda: [0] * _DEEPEST)
    steps: list[int] = field(default_factory=lambda: [0] * _DEEPEST)

    def add(self, guesses: Collection[tuple[int, bool]]) -> None:
        """Of one sequence in one step: depth, 1 for a guess right below the pending token, and whether it was right."""
        for depth, accepted in guesses:
            at = min(depth, _DEEPEST) - 1
            self.drafted[at] += 1
            self.accepted[at] += accepted
        for depth in {depth for depth, _ in guesses}:
            self.steps[min(depth, _DEEPEST) - 1] += 1

    def counts(self) -> GuessCounts:
        return GuessCounts(tuple(self.drafted), tuple(self.accepted), tuple(self.steps))


class SizeCounts(NamedTuple):
    """counts: [_SIZES + 1], at place i how many steps had a size above 2^(i - 1) and up to 2^i, at the last any above.
    total: of all sizes.
    """

    counts: tuple[int, ...]
    total: int


@dataclass(slots=True)
class SizeTally:
    """How large steps were, in powers of two."""

    places: list[int] = field(default_factory=lambda: [0] * (_SIZES + 1))
    total: int = 0

    def add(self, size: int) -> None:
        """size: 1 or more."""
        self.places[min((size - 1).bit_length(), _SIZES)] += 1
        self.total += size

    def counts(self) -> SizeCounts:
        return SizeCounts(tuple(self.places), self.total)
