"""Plain numpy implementation of `rank`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..sample import Draw
from ..sample.reference import divided, gumbel
from . import Vocabulary


def _rank_row(
    logits: NDArray[np.float32], vocabulary: Vocabulary, draw: Draw, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    scaled = noisy = logits
    if draw.temperature > 0.0:
        scaled = divided(logits, draw.temperature)
        noisy = scaled + gumbel(vocabulary, draw.position, draw.seed)
    order = np.lexsort((vocabulary, -noisy))[:k]
    weights = np.exp((scaled - scaled.max()).astype(np.float64))
    return vocabulary[order], weights[order] / weights.sum()


def rank(
    logits: NDArray[np.float32], vocabulary: Vocabulary | None, draws: Sequence[Draw], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rows, columns = logits.shape
    ids = np.arange(columns) if vocabulary is None else vocabulary
    if len(draws) != rows:
        raise ValueError("logits need one row per draw")
    if not 1 <= k <= columns:
        raise ValueError("k must be between 1 and the number of columns")
    if len(ids) != columns:
        raise ValueError(f"vocabulary must have {columns} entries")
    tokens, probabilities = np.empty((rows, k), np.int64), np.empty((rows, k), np.float32)
    for row, draw in enumerate(draws):
        tokens[row], probabilities[row] = _rank_row(logits[row], ids, draw, k)
    return tokens, probabilities


def rank_rows(
    logits: NDArray[np.float32], vocabulary: Vocabulary | None, draws: Sequence[Draw], ahead: int, k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    each = len(logits) // len(draws)
    following = [draw._replace(position=draw.position + ahead + i) for draw in draws for i in range(each)]
    tokens, probabilities = rank(logits, vocabulary, following, k)
    return tokens.reshape(len(draws), -1), probabilities.reshape(len(draws), -1)
