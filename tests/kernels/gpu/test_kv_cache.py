from __future__ import annotations

import pytest
import torch
from paged_caches import CPU

from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.triton_impl import PagedCache, allocate, block_bytes

SHAPE = CacheShape(layers=3, kv_heads=2, head_dim=24)


def tensors(cache: PagedCache) -> list[torch.Tensor]:
    return [side for side in (cache.k, cache.v, cache.k_scale, cache.v_scale) if side is not None]


@pytest.mark.parametrize(
    ("form", "dtype", "stored"),
    [
        ("auto", torch.float32, torch.float32),
        ("auto", torch.bfloat16, torch.bfloat16),
        ("auto", torch.float16, torch.float16),
        ("bf16", torch.float16, torch.bfloat16),
        ("f16", torch.bfloat16, torch.float16),
        ("int8", torch.bfloat16, torch.int8),
        ("fp8", torch.float16, torch.float8_e4m3fn),
    ],
)
def test_allocates_zeroed_pages_and_tells_what_a_block_takes(
    form: str, dtype: torch.dtype, stored: torch.dtype
) -> None:
    cache = allocate(SHAPE, 5, form=form, dtype=dtype, device=CPU)
    for side in (cache.k, cache.v):
        assert side.shape == (3, 5, 2, 16, 24)
        assert side.dtype == stored
    scaled = form in ("int8", "fp8")
    for scale in (cache.k_scale, cache.v_scale):
        assert (scale is not None) == scaled
        assert scale is None or (scale.shape == (3, 5, 2, 16) and scale.dtype == torch.float32)
    assert not any(side.float().any() for side in tensors(cache))
    assert len({side.data_ptr() for side in tensors(cache)}) == (4 if scaled else 2)
    assert block_bytes(SHAPE, form=form, dtype=dtype) * 5 == sum(side.nbytes for side in tensors(cache))
