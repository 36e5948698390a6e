"""Figures of the verify steps behind a text delta, carried until a delta leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .committer import Piece
from .fields import JsonObject

if TYPE_CHECKING:
    from paceline.spec.planner import Reason


class StepCounts:
    """Guesses drafted and accepted and tokens emitted since the last delta that left; `emitted` sums to the usage.

    With them what the latest step says: whose guesses were accepted, and why as many were verified.
    """

    def __init__(self) -> None:
        self._drafted = self._accepted = self._emitted = 0
        self._source = ""
        self._reason: Reason | None = None

    def add(self, piece: Piece) -> None:
        self._drafted += piece.drafted
        self._accepted += piece.accepted
        self._emitted += len(piece.tokens)
        if piece.tokens:
            self._source, self._reason = piece.source, piece.reason

    @property
    def pending(self) -> bool:
        return self._emitted > 0

    def take(self) -> JsonObject:
        """The `x_spec` object; the counts start again at zero."""
        counts = {
            "drafted": self._drafted,
            "accepted": self._accepted,
            "emitted": self._emitted,
            "source": self._source,
            "reason": self._reason,
        }
        self._drafted = self._accepted = self._emitted = 0
        return counts


def add_counts(first: JsonObject, second: JsonObject) -> JsonObject:
    """The `x_spec` of two deltas that became one: counts add up, and the second has the last word on the rest."""
    return second | {key: first[key] + second[key] for key in ("drafted", "accepted", "emitted")}
