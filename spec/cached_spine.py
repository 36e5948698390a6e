"""A spine of a model with a cache: rows for its guesses stand behind those that are due, and all run once per level.

A row beside others costs next to nothing as long as a pass is bound by reading its weights; running one again changes
nothing, and no row sees those behind it. So one batch serves all levels: after each of them the rows that wait for a
guess take it, and what the next pass reads beside it, from the row before.

    tokens  …  t  t  t  ?  ?  ?       first level: the last t tells the first ?, and so on
            due rows ^  rows that wait: `sources` names the row before each
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Guessing, Ops
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation
from paceline.kernels.sample import Draw

from .cached_model import CachedModel
from .draft_batch import Rows, batch_of
from .guess_tree import Floats
from .spine import MOST_LEVELS, read
from .tree_drafter import SIBLINGS

MOST_ROWS = 64  # of a pass: more are no longer read for the price of one


class CachedSpine:
    """reads_hidden: whether a guess's row reads what the row above it made."""

    def __init__(self, ops: Ops, guessing: Guessing, model: CachedModel, *, reads_hidden: bool) -> None:
        self._ops = ops
        self._guessing = guessing
        self._model = model
        self._reads_hidden = reads_hidden
        ids = model.vocabulary
        self._vocabulary = None if ids is None else ops.constant(ids.astype(np.int32))
        self._forward = model.compile(self._pass)

    def _pass(self, batch: Any, cache: Cache) -> tuple[Activation]:
        rank, join, fill = self._guessing.rank, self._guessing.join, self._guessing.fill
        for level in range(MOST_LEVELS):
            logits, hidden = self._model.body(batch, cache)[:2]
            tokens, probabilities = rank(logits, self._vocabulary, batch.draws, 0, min(SIBLINGS, logits.shape[1]))
            if level < MOST_LEVELS - 1:
                batch = batch._replace(ids=fill(batch.ids, tokens[:, 0], batch.sources))
                if self._reads_hidden:
                    batch = batch._replace(features=fill(batch.features, hidden, batch.sources))
        return (join((tokens, probabilities, hidden) if self._reads_hidden else (tokens, probabilities)),)

    def grow(
        self, chains: Sequence[Rows], levels: Sequence[int], draws: Sequence[Draw], cache: Cache
    ) -> tuple[NDArray[np.int64], Floats, Floats | list[None]]:
        """levels: of each sequence, 1 to `MOST_LEVELS`: so many of its last rows are ranked, and all of these but the
        first wait for guesses. draws: of the tokens after them.

        -> (tokens [M, k], estimates [M, k], hidden [M, H] or Nones), of the ranked rows, the best guess first.
        """
        sources: list[int] = []
        first = 0
        for rows, count in zip(chains, levels, strict=True):
            sources += [*[-1] * (len(rows.ids) - count + 1), *range(first, first + count - 1)]
            first += count
        batch = batch_of(chains, levels)._replace(draws=draws, sources=np.array(sources, np.int64))
        width = batch.features.shape[1] if self._reads_hidden and batch.features is not None else 0
        joined = self._ops.host(self._forward(batch, cache)[0]).copy()  # the next call writes where this one did
        tokens, estimates, hidden = read(joined, 1, width)
        return tokens[:, 0], estimates[:, 0], hidden[:, 0] if self._reads_hidden else [None] * len(draws)


def lengthened(rows: Rows, count: int) -> Rows:
    """With `count` rows more that wait for guesses."""
    if not count:
        return rows
    features = rows.features
    if features is not None:
        features = np.concatenate((features, np.zeros((count, features.shape[1]), np.float32)))
    end = rows.positions[-1] + 1
    return rows._replace(
        ids=[*rows.ids, *[0] * count], positions=[*rows.positions, *range(end, end + count)], features=features
    )
