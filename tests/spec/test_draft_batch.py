from __future__ import annotations

import numpy as np

from paceline.spec.draft_batch import Rows, batch_of, fed


def test_rows_of_several_sequences_make_one_batch() -> None:
    chain = Rows(ids=[5, 6, 7], positions=[30, 31, 32], first=16, start=30, blocks=[9, 4, 2])
    tree = Rows(
        ids=[1, 2],
        positions=[3, 3],
        first=0,
        start=3,
        blocks=[7],
        ancestors=[1, 2],
        features=np.ones((2, 4), np.float32),
    )
    batch = batch_of([chain, tree], [1, 2])
    assert batch.ids.tolist() == [5, 6, 7, 1, 2]
    assert batch.positions.tolist() == [30, 31, 32, 3, 3]
    assert batch.slots.tolist() == [4 * 16 + 14, 4 * 16 + 15, 2 * 16, 7 * 16 + 3, 7 * 16 + 4]
    assert batch.sampled.tolist() == [2, 3, 4]
    assert batch.layout.row_starts.tolist() == [0, 3, 5]
    assert batch.layout.context_lens.tolist() == [14, 3]
    assert batch.layout.block_tables.tolist() == [[4, 2], [7, 0]]
    assert batch.layout.causal.tolist() == [True, False]
    assert batch.layout.ancestors.tolist() == [0, 0, 0, 1, 2]
    assert batch.features is not None
    assert batch.features.shape == (2, 4)


def test_fed_rows_need_no_cache() -> None:
    features = np.arange(40, dtype=np.float32).reshape(20, 2)
    batch = fed(features)
    assert batch.features is not None
    assert np.array_equal(batch.features, features)
    assert batch.sampled.tolist() == list(range(20))
    assert batch.layout.block_tables.shape == (1, 2)
    tokens = fed(np.zeros((2, 0), np.float32), [4, 9])
    assert tokens.features is None
    assert tokens.ids.tolist() == [4, 9]
