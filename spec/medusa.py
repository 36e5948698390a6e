"""Medusa: K heads guess the K tokens after the pending one, each on its own (Cai et al., arXiv 2401.10774).

No head knows what another one guessed, so every guess of one level stands below every guess of the level above, and the
tree is made of the likeliest of these paths.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Guessing
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation
from paceline.kernels.sample import Draw

from .draft_batch import fed
from .guess_tree import Floats
from .heads import FinalNorm, Heads, LastHidden
from .proposer import Ask, Proposal, Verdict
from .spine import read
from .tree_drafter import DraftTime, rank_coupled

_RANKS = 8  # guesses kept per head


class MedusaModel:
    """Two passes: all heads' blocks over the hidden states, then the shared rows over what they made, read once.

    Heads with rows of their own need one pass, and so do all where passes can go on from their own guesses.
    """

    def __init__(self, heads: Heads, norm: FinalNorm) -> None:
        self._heads = heads
        self._norm = norm
        self._first = heads.ops.compile(self._blocks_pass if heads.shares_rows else self._whole_pass)
        self._second = heads.ops.compile(self._rows_pass)
        self._ranked = None if heads.ops.guessing is None else heads.ops.compile(self._ranked_pass(heads.ops.guessing))

    def __len__(self) -> int:
        return len(self._heads)

    def _blocks_pass(self, batch: Any, cache: Cache) -> tuple[Activation, ...]:
        """K times [S, H]"""
        x = self._heads.ops.feed(batch.features)
        return tuple(self._heads.blocks(head, x) for head in range(len(self)))

    def _whole_pass(self, batch: Any, cache: Cache) -> tuple[Activation, ...]:
        """K times logits [S, N]"""
        x = self._heads.ops.feed(batch.features)
        return tuple(self._heads.out(head, self._heads.blocks(head, x)) for head in range(len(self)))

    def _rows_pass(self, batch: Any, cache: Cache) -> tuple[Activation]:
        return (self._heads.out(0, self._heads.ops.feed(batch.features)),)

    def _ranked_pass(self, guessing: Guessing) -> Callable[[Any, Cache], tuple[Activation]]:
        heads = self._heads
        ids = None if heads.vocabulary is None else heads.ops.constant(heads.vocabulary.astype(np.int32))

        def rank(logits: Activation, draws: Any, head: int) -> tuple[Activation, Activation]:
            return guessing.rank(logits, ids, draws, head, min(_RANKS, logits.shape[1]))

        def run(batch: Any, cache: Cache) -> tuple[Activation]:
            x = heads.ops.feed(batch.features)
            made = [heads.blocks(head, x) for head in range(len(self))]
            if heads.shares_rows:
                return (guessing.join(rank(heads.out(0, guessing.join(made, below=True)), batch.draws, 0)),)
            each = [rank(heads.out(head, blocks), batch.draws, head) for head, blocks in enumerate(made)]
            return (guessing.join([part for parts in zip(*each, strict=True) for part in parts]),)

        return run

    def rank(self, hidden: Floats, draws: Sequence[Draw]) -> tuple[NDArray[np.int64], Floats]:
        """hidden [S, H], before the final norm; draws: K of each sequence in turn -> (tokens, estimates) [S, K, k],
        the best guess first.
        """
        heads, ops = self._heads, self._heads.ops
        if self._ranked is not None:
            batch = fed(self._norm(hidden), draws=draws[:: len(self)])
            return read(ops.host(self._ranked(batch, None)[0]), len(self))[:2]
        results = self._first(fed(self._norm(hidden)), None)
        if not heads.shares_rows:
            each = [
                rank_coupled(ops, logits, heads.vocabulary, draws[head :: len(self)], _RANKS)
                for head, logits in enumerate(results)
            ]
            tokens, estimates = (np.stack(part, axis=1) for part in zip(*each, strict=True))
            return tokens, estimates
        rows = np.stack([ops.host(result) for result in results], axis=1).reshape(-1, hidden.shape[1])
        tokens, estimates = rank_coupled(ops, self._second(fed(rows), None)[0], heads.vocabulary, draws, _RANKS)
        shape = (len(hidden), len(self), -1)
        return tokens.reshape(shape), estimates.reshape(shape)


class MedusaDrafter:
    name = "medusa"
    needs_hidden = True

    def __init__(self, model: MedusaModel) -> None:
        self._model = model
        self._hidden = LastHidden()
        self._time = DraftTime()

    def restart(self) -> None:
        """Implements `Timed`."""
        self._time = DraftTime()

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return self._time.expected(len(asks))

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        start = time.perf_counter()
        proposals = [Proposal(self.name)] * len(asks)
        ready = self._hidden.ready(asks)
        if ready:
            draws = [
                Draw(ask.seed, len(ask.tokens) + head, ask.temperature)
                for ask in (asks[i] for i in ready)
                for head in range(len(self._model))
            ]
            guesses = zip(*self._model.rank(np.stack(list(ready.values())), draws), strict=True)
            for i, (tokens, estimates) in zip(ready, guesses, strict=True):
                proposals[i] = likeliest_paths(self.name, tokens, estimates, asks[i].max_guesses)
            self._time.observe(len(asks), (time.perf_counter() - start) * 1e3)
        return proposals

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        self._hidden.observe(verdicts)

    def forget(self, seq_id: str) -> None:
        self._hidden.forget(seq_id)


def likeliest_paths(source: str, tokens: NDArray[np.int64], estimates: Floats, most: int) -> Proposal:
    """The `most` likeliest nodes of the tree in which all guesses of a level stand below each of the level above.

    tokens, estimates: [K, k], estimates descending along k: a node is looked at only after its parent and its sibling
    before it, neither of which is less likely.
    """
    guesses, chances = tokens.tolist(), estimates.tolist()
    chosen: list[int] = []
    parents: list[int] = []
    probabilities: list[float] = []
    arrival = itertools.count()
    # Entries: (-likelihood, order of arrival, parent guess, its likelihood, level, rank)
    heap = [(-chances[0][0], next(arrival), -1, 1.0, 0, 0)]
    while heap and len(chosen) < most:
        negative, _, parent, above, level, rank = heapq.heappop(heap)
        chosen.append(guesses[level][rank])
        parents.append(parent)
        probabilities.append(chances[level][rank])
        if rank + 1 < len(guesses[level]):
            heapq.heappush(heap, (-above * chances[level][rank + 1], next(arrival), parent, above, level, rank + 1))
        if level + 1 < len(guesses):
            likely = -negative
            first = (-likely * chances[level + 1][0], next(arrival), len(chosen) - 1, likely, level + 1, 0)
            heapq.heappush(heap, first)
    return Proposal(source, tuple(chosen), tuple(parents), tuple(probabilities))
