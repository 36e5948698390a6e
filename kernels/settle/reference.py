"""`settle` of a backend whose logits the host reads at no cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..batch import Batch
from ..kv_cache import Cache
from ..sample import Draw, Logits
from . import Settled


@dataclass(frozen=True, slots=True)
class Done:
    """Implements `Pending`: nothing is waited for."""

    settled: Settled

    def result(self) -> Settled:
        return self.settled


def settle(
    logits: Logits,
    draws: Sequence[Draw | None],
    batch: Batch,
    cache: Cache,
    *,
    argmax: Callable[[Logits], list[int]],
) -> Done:
    """The argmax of all rows in one call, if a row wants it; the walk comes to few of the others.

    argmax: [M, V] -> [M], ties to the lower id.
    """
    tokens: list[int | None] = [None] * len(draws)
    if any(draw is not None and draw.temperature == 0.0 for draw in draws):
        for row, (draw, token) in enumerate(zip(draws, argmax(logits), strict=True)):
            if draw is not None and draw.temperature == 0.0:
                tokens[row] = token
    return Done(Settled(tokens, moved=False))
