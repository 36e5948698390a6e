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


def check(shape: Sequence[int], vocabulary: Vocabulary | None, draws: Sequence[Draw], k: int) -> None:
    """Raises ValueError for what does not fit logits of a shape [M, Vt]."""
    rows, columns = shape
    if len(draws) != rows:
        raise ValueError("logits need one row per draw")
    if not 1 <= k <= columns:
        raise ValueError("k must be between 1 and the number of columns")
    if vocabulary is not None and len(vocabulary) != columns:
        raise ValueError(f"vocabulary must have {columns} entries")


def rank(
    logits: NDArray[np.float32], vocabulary: Vocabulary | None, draws: Sequence[Draw], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    check(logits.shape, vocabulary, draws, k)
    ids = np.arange(logits.shape[1]) if vocabulary is None else vocabulary
    tokens, probabilities = np.empty((len(draws), k), np.int64), np.empty((len(draws), k), np.float32)
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
