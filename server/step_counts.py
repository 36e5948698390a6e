"""Figures of the verify steps behind a text delta, carried until a delta leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .committer import Piece, PromptCounts
from .fields import JsonObject
from .reply_parts import Span

if TYPE_CHECKING:
    from paceline.spec.planner import Reason

TREES_KEPT = 16  # of the steps of one delta: nobody looks at more at once, and what waits must not grow with trees


class StepCounts:
    """Guesses drafted and accepted and tokens emitted since the last delta that left; `emitted` sums to the usage.

    With them what the latest step says: whose guesses were accepted, and why as many were verified; the steps
    themselves, where a trace was asked for; and once, as soon as there is a token, what the prompt took.
    """

    def __init__(self) -> None:
        self._drafted = self._accepted = self._emitted = 0
        self._source = ""
        self._reason: Reason | None = None
        self._steps: list[JsonObject] | None = None  # None until a step was traced
        self._prompt: PromptCounts | None = None  # that is still to be told

    def add(self, piece: Piece) -> None:
        self._drafted += piece.drafted
        self._accepted += piece.accepted
        self._emitted += len(piece.tokens)
        if piece.tokens:
            self._source, self._reason = piece.source, piece.reason
        self._prompt = piece.prompt or self._prompt
        if piece.step is not None:
            self._steps = _with(self._steps or [], [piece.step])

    @property
    def pending(self) -> bool:
        return self._emitted > 0

    @property
    def traced(self) -> bool:
        """True once a step was."""
        return self._steps is not None

    def take(self, spans: Sequence[Span] | None) -> JsonObject:
        """The `x_spec` object; the counts start again at zero.

        spans: of what the delta's text is made, told with a trace; None where nobody knows.
        """
        counts: JsonObject = {
            "drafted": self._drafted,
            "accepted": self._accepted,
            "emitted": self._emitted,
            "source": self._source,
            "reason": self._reason,
        }
        if self._prompt is not None:
            counts["input_tokens"], counts["cached_tokens"] = self._prompt
            self._prompt = None
        if self._steps is not None:
            counts["steps"] = self._steps
            self._steps = []
            if spans is not None:
                counts["spans"] = [list(span) for span in spans]
        self._drafted = self._accepted = self._emitted = 0
        return counts


def add_counts(first: JsonObject, second: JsonObject) -> JsonObject:
    """The `x_spec` of two deltas that became one, either of which may have had none: counts add up, and the second has
    the last word on the rest. Steps are joined, and what the text is made of is only told where both tell it.
    """
    joined = first | second
    for key in ("drafted", "accepted", "emitted"):
        joined[key] = first.get(key, 0) + second.get(key, 0)
    if "steps" in joined:
        joined["steps"] = _with(first.get("steps", []), second.get("steps", []))
    joined.pop("spans", None)
    if "spans" in first and "spans" in second:
        joined["spans"] = [*first["spans"], *second["spans"]]
    return joined


def _with(steps: list[JsonObject], newer: list[JsonObject]) -> list[JsonObject]:
    """Both, the newest TREES_KEPT with their trees: no older one of `steps` has any, for those went through here."""
    had = max(len(steps) - TREES_KEPT, 0)
    kept = max(len(steps) + len(newer) - TREES_KEPT, 0)
    joined = [*steps, *newer]
    joined[had:kept] = map(_without_tree, joined[had:kept])
    return joined


def without_trees(counts: JsonObject) -> JsonObject:
    """An `x_spec` with steps, without their trees."""
    return {**counts, "steps": list(map(_without_tree, counts["steps"]))}


def _without_tree(step: JsonObject) -> JsonObject:
    return step if step["tree"] is None else {**step, "tree": None}
