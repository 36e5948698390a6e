"""From rows of several sequences to one pass, of the target or of a drafter."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.batch import Batch
from paceline.kernels.paging import BLOCK_SIZE, slots_of
from paceline.kernels.sample import Draw
from paceline.kernels.tree_attention import Layout


class Rows(NamedTuple):
    """One sequence's rows [r]; row i goes to its slot start + i.

    first: the first position it attends to, at the start of a block; start: entries before it are in the cache.
    ancestors: [r] 64-bit words over these rows, None for a chain. features: [r, H], None where the pass reads none.
    """

    ids: Sequence[int]
    positions: Sequence[int]
    first: int
    start: int
    blocks: Sequence[int]
    ancestors: Sequence[int] | None = None
    features: NDArray[np.float32] | None = None


def batch_of(rows: Sequence[Rows], sampled: Sequence[int]) -> Batch:
    """sampled: how many of each sequence's last rows are wanted."""
    ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    wanted: list[int] = []
    ancestors: list[int] = []
    starts = [0]
    for each, count in zip(rows, sampled, strict=True):
        length = len(each.ids)
        ids += each.ids
        positions += each.positions
        slots += slots_of(each.blocks, each.start, length)
        ancestors += each.ancestors or [0] * length
        end = starts[-1] + length
        starts.append(end)
        wanted += range(end - count, end)
    features = [each.features for each in rows if each.features is not None]
    return Batch.of(
        ids=ids,
        positions=positions,
        slots=slots,
        sampled=wanted,
        starts=starts,
        contexts=[each.start - each.first for each in rows],
        tables=[list(each.blocks[each.first // BLOCK_SIZE :]) for each in rows],
        causal=[each.ancestors is None for each in rows],
        ancestors=ancestors,
        features=features[0] if len(features) == 1 else np.concatenate(features) if features else None,
    )


def fed(features: NDArray[np.float32], ids: Sequence[int] | None = None, draws: Sequence[Draw] | None = None) -> Batch:
    """features [R, W], ids [R] or none: rows of a pass that has no cache. draws: [R], for one that ranks."""
    batch = _rows(len(features))
    return batch._replace(
        ids=batch.ids if ids is None else np.array(ids, np.int64),
        features=None if features.shape[1] == 0 else np.ascontiguousarray(features, np.float32),
        draws=draws,
    )


@lru_cache(maxsize=128)
def _rows(count: int) -> Batch:
    """What is the same for all passes of so many rows: it takes longer to make than their ids and features."""
    rows, blocks = np.arange(count), np.arange(-(-count // BLOCK_SIZE), dtype=np.int32)
    return Batch(np.zeros_like(rows), rows, rows, rows, Layout.chain(count, blocks))
