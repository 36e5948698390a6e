from __future__ import annotations

import pytest
import torch

from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.reference import allocate, block_bytes
from paceline.kernels.paging import BLOCK_SIZE


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_allocates_zeroed_slots_and_tells_what_a_block_takes(dtype: torch.dtype) -> None:
    shape = CacheShape(layers=3, kv_heads=2, head_dim=8)
    cache = allocate(shape, 5, dtype, torch.device("cpu"))
    for side in (cache.k, cache.v):
        assert side.shape == (3, 5 * BLOCK_SIZE, 2, 8)
        assert side.dtype == dtype
        assert not side.any()
    assert cache.k.data_ptr() != cache.v.data_ptr()
    assert block_bytes(shape, dtype) * 5 == cache.k.nbytes + cache.v.nbytes
