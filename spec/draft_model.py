"""Drafting with a smaller model that has the target's vocabulary (Leviathan et al., arXiv 2211.17192).

It reads the text as the target does, from the first token on, and needs nothing of the target but its block tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from paceline.kernels.backend import Compile, Ops, Pass
from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.rank import Vocabulary

from .cached_drafter import CachedDrafter, CacheState
from .cached_model import CachedModel
from .proposer import Ask, Verdict


@dataclass(slots=True)
class _State(CacheState):
    """next: the position the next verdict starts at if the sequence simply goes on."""

    next: int = 0


class WholeModel(Protocol):
    @property
    def forward(self) -> Pass: ...

    @property
    def compile(self) -> Compile: ...

    def body(self, batch: Any, cache: Cache) -> tuple[Activation, ...]: ...


class TrimmedModel:
    """A model that knows fewer tokens than the target, or more: tables are often padded, each to a size of its own.

    ids, target_ids: how many tokens it and the target know.
    """

    vocabulary: Vocabulary | None = None

    def __init__(self, model: WholeModel, ids: int, target_ids: int) -> None:
        self._model = model
        self._ids = ids
        self._target_ids = target_ids

    def forward(self, batch: Batch, cache: Cache) -> tuple[Activation, ...]:
        logits, *more = self._model.forward(self._known(batch), cache)
        few = logits[:, : self._target_ids]
        return (np.ascontiguousarray(few) if isinstance(few, np.ndarray) else few, *more)

    def body(self, batch: Any, cache: Cache) -> tuple[Activation, ...]:
        logits, *more = self._model.body(batch, cache)
        return (logits[:, : self._target_ids], *more)

    def compile(self, forward: Callable[[Any, Cache], Any]) -> Pass:
        run = self._model.compile(forward)
        return lambda batch, cache: run(self._known(batch), cache)

    def _known(self, batch: Batch) -> Batch:
        """Of the ids that the host gives; what the model guesses itself it knows."""
        return batch._replace(ids=np.minimum(batch.ids, self._ids - 1))


class DraftModel(CachedDrafter[_State]):
    """Guesses with a whole model.

    cache: of the model's own shape, with as many blocks as the target's. token_ms: what a token costs without this
    drafter, in milliseconds: another pass must promise more than it takes.
    """

    name = "draft"
    needs_hidden = False
    behind = 0
    reads_hidden = False

    def __init__(self, model: CachedModel, cache: Cache, ops: Ops, *, token_ms: Callable[[], float]) -> None:
        super().__init__(model, cache, ops, token_ms)

    def _ready(self, ask: Ask) -> _State:
        state = self._states.setdefault(ask.seq_id, _State(0, 0))
        # Another sequence may have entered more of a shared prefix since the last call.
        while (end := (state.done // BLOCK_SIZE + 1) * BLOCK_SIZE) < len(ask.tokens):
            if not self._holds(ask, state, state.done // BLOCK_SIZE):
                break
            state.done = end
        state.done = min(state.done, len(ask.tokens) - 1)  # the pending token's row tells what follows it
        return state

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            state = self._states.setdefault(verdict.seq_id, _State(0, 0))
            if verdict.start != state.next:  # it was preempted, and has other blocks now
                state.done = 0
            state.next = verdict.start + len(verdict.path)
