from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache.reference import TensorCache

SLOTS = 32


@settings(max_examples=60)
@given(
    moves=st.lists(
        st.tuples(st.integers(0, SLOTS - 1), st.integers(0, SLOTS - 1)), max_size=20, unique_by=lambda move: move[1]
    )
)
def test_reads_happen_before_writes(ops: Ops, moves: list[tuple[int, int]]) -> None:
    """Small ranges: chains such as 3 -> 2, 2 -> 1 and swaps are common among them."""
    k = torch.randn(2, SLOTS, 3, 4, generator=torch.Generator().manual_seed(1))
    cache = TensorCache(k, -k)
    before = TensorCache(cache.k.clone(), cache.v.clone())
    source, target = np.ascontiguousarray(np.array(moves, np.int64).reshape(-1, 2).T)

    ops.move_kv(cache, source, target)

    origin = {to: frm for frm, to in moves}
    for slot in range(SLOTS):
        old = origin.get(slot, slot)
        assert torch.equal(cache.k[:, slot], before.k[:, old])
        assert torch.equal(cache.v[:, slot], before.v[:, old])
