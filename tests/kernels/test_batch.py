from __future__ import annotations

import numpy as np

from paceline.kernels.batch import Batch


def test_lists_of_several_sequences_become_arrays_of_their_types() -> None:
    """Tables are padded, and the highest of 64 ancestor bits survives."""
    words = [1 | 1 << node for node in range(64)]
    batch = Batch.of(
        ids=[7, *range(64)],
        positions=[3, *range(100, 164)],
        slots=[19, *range(200, 264)],
        sampled=[0, 64],
        starts=[0, 1, 65],
        contexts=[3, 40],
        tables=[[1], [4, 5, 6]],
        causal=[True, False],
        ancestors=[0, *words],
    )
    layout = batch.layout
    assert batch.ids.tolist() == [7, *range(64)]
    assert batch.positions.tolist() == [3, *range(100, 164)]
    assert batch.slots.tolist() == [19, *range(200, 264)]
    assert batch.sampled.tolist() == [0, 64]
    assert layout.row_starts.tolist() == [0, 1, 65]
    assert layout.context_lens.tolist() == [3, 40]
    assert layout.block_tables.tolist() == [[1, 0, 0], [4, 5, 6]]
    assert layout.causal.tolist() == [True, False]
    assert layout.ancestors.view(np.uint64).tolist() == [0, *words]
    assert batch.features is None
    assert {batch.ids.dtype, batch.sampled.dtype, layout.ancestors.dtype} == {np.dtype(np.int64)}
    assert {layout.row_starts.dtype, layout.block_tables.dtype} == {np.dtype(np.int32)}
    assert all(each.flags.c_contiguous for each in (*batch[:4], *layout))
