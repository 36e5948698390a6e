"""`settle`: what each sampled row of a pass chooses, for a whole step at once, and cache entries put where they belong.

A backend whose logits are on a device chooses there and walks the trees there, so that one small copy to the host is
all a step waits for. One that computes on the host may leave rows to `sample`, which then is asked only for those that
the walk comes to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..batch import Batch
from ..kv_cache import Cache
from ..sample import Draw, Logits


class Settled(NamedTuple):
    """tokens: [M] what `sample` draws for each sampled row, None where that is left to the caller.

    moved: entries of accepted nodes that stand off the line are in their places already, for every sequence. A walk
    starts at a sequence's first sampled row, goes to the child that carries the token chosen, and ends where none
    does; accepted node path[j] then belongs in the slot of the root's row + j.
    """

    tokens: list[int | None]
    moved: bool


class Pending(Protocol):
    def result(self) -> Settled:
        """Waits for the device."""
        ...


class Settle(Protocol):
    def __call__(self, logits: Logits, draws: Sequence[Draw | None], batch: Batch, cache: Cache) -> Pending:
        """logits: of the pass over `batch`, [M, V]; draws: one per row, None where the caller chooses by itself.

        Returns before a device has computed anything.
        """
        ...
