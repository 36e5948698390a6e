"""One verify step as clients see it who asked for a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from paceline.engine.request import TreeTrace

from .fields import JsonObject

if TYPE_CHECKING:
    from paceline.spec.planner import Reason

_DIGITS = 4  # of probabilities: nobody sees more, and they are most of what is sent


class TokenTexts(Protocol):
    """What is asked of a tokenizer."""

    def token_text(self, id_: int) -> str:
        """The token for people to read."""


def step_body(trace: TreeTrace, ms: float, reason: Reason | None, names: TokenTexts) -> JsonObject:
    """ms: wall time of the step. reason: why as many nodes were verified."""
    emitted = trace.emitted
    return {
        "ms": round(ms, 3),
        "nodes": len(trace.tokens),
        "drafted": len(trace.tokens) - 1,
        "accepted": len(trace.path) - 1,
        "emitted": len(emitted),
        "reason": reason,
        "tokens": [{"text": names.token_text(token), "source": source} for token, source in emitted],
        "tree": {
            "texts": [names.token_text(token) for token in trace.tokens],
            "parents": list(trace.parents),
            "sources": list(trace.sources),
            "estimates": [round(value, _DIGITS) for value in trace.estimates],
            "chances": [round(value, _DIGITS) for value in trace.chances],
            "path": list(trace.path),
        },
    }
