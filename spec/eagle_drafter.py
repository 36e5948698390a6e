"""Drafting with the feature-conditioned layer, whose entries are made of hidden states that come with the verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache import Cache
from paceline.kernels.paging import BLOCK_SIZE

from .cached_drafter import CachedDrafter, CacheState
from .eagle import EagleModel
from .guess_tree import Floats
from .proposer import Ask, Verdict

_WINDOW = 128  # positions it looks back on: nearly all that helps a guess is near, and drafting stays cheap


@dataclass(slots=True)
class _State(CacheState):
    """`waiting` holds the hidden states of the entries from `done` on.

    known: whether valid entries of a shared prefix have been looked for.
    """

    waiting: list[Floats] = field(default_factory=list)
    known: bool = False

    @property
    def arrived(self) -> int:
        return sum(map(len, self.waiting))

    def add(self, start: int, features: Floats) -> None:
        """Hidden states of positions start …; the first `_WINDOW` of too many are let go."""
        if start != self.done + self.arrived:
            self.first = self.done = start
            self.waiting.clear()
            self.known = False
        self.waiting.append(features)
        surplus = self.arrived - _WINDOW
        if surplus >= BLOCK_SIZE:
            together = np.concatenate(self.waiting)
            drop = -(-(self.done + surplus) // BLOCK_SIZE) * BLOCK_SIZE - self.done
            self.first = self.done = self.done + drop
            self.known = True
            self.waiting = [together[drop:].copy()]


class EagleDrafter(CachedDrafter[_State]):
    """Guesses with an `EagleModel`.

    cache: one layer, with as many blocks as the target's. index: which of a verdict's features are its own. token_ms:
    what a token costs without this drafter, in milliseconds: another pass must promise more than it takes.
    """

    name = "eagle"
    needs_hidden = True
    behind = 1
    reads_hidden = True
    window = _WINDOW

    def __init__(self, model: EagleModel, cache: Cache, ops: Ops, *, index: int, token_ms: Callable[[], float]) -> None:
        super().__init__(model, cache, ops, token_ms)
        self._index = index

    def _ready(self, ask: Ask) -> _State | None:
        """The sequence's state where all that was committed has arrived."""
        state = self._states.get(ask.seq_id)
        if state is None or state.done + state.arrived != len(ask.tokens) - 1 or not state.waiting:
            return None
        if not state.known:
            state.known = True
            while state.first and self._holds(ask, state, state.first // BLOCK_SIZE - 1):
                state.first -= BLOCK_SIZE
        return state

    def _features(self, state: _State, count: int) -> Floats:
        if len(state.waiting) > 1:
            state.waiting = [np.concatenate(state.waiting)]
        return state.waiting[0][:count]

    def _entered(self, state: _State, count: int) -> None:
        state.done += count
        rest = state.waiting[0][count:]
        state.waiting = [rest] if len(rest) else []

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            if not verdict.features:  # of a sequence that asks others
                continue
            state = self._states.setdefault(verdict.seq_id, _State(verdict.start, verdict.start))
            state.add(verdict.start, verdict.features[self._index])
