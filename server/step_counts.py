"""Figures of the verify steps behind a text delta, carried until a delta leaves."""

from __future__ import annotations

from .committer import Piece
from .fields import JsonObject


class StepCounts:
    """Guesses drafted and accepted and tokens emitted since the last delta that left; `emitted` sums to the usage."""

    def __init__(self) -> None:
        self._drafted = self._accepted = self._emitted = 0

    def add(self, piece: Piece) -> None:
        self._drafted += piece.drafted
        self._accepted += piece.accepted
        self._emitted += len(piece.tokens)

    @property
    def pending(self) -> bool:
        return self._emitted > 0

    def take(self) -> JsonObject:
        """The `x_spec` object; the counts start again at zero."""
        counts = {"drafted": self._drafted, "accepted": self._accepted, "emitted": self._emitted}
        self._drafted = self._accepted = self._emitted = 0
        return counts


def add_counts(first: JsonObject, second: JsonObject) -> JsonObject:
    """The `x_spec` of two deltas that became one."""
    return {key: first[key] + second[key] for key in first}
