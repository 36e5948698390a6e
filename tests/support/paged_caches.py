"""The Triton kernels' pages, seen slot by slot as the reference keeps them."""

from __future__ import annotations

import torch

from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.triton_impl import PagedCache, allocate

CPU = torch.device("cpu")


def by_slot(pages: torch.Tensor) -> torch.Tensor:
    """[layers, blocks, Hkv, 16, …] -> [layers, slots, Hkv, …], as stored."""
    return pages.transpose(2, 3).flatten(1, 2)


def values(pages: torch.Tensor, scale: torch.Tensor | None) -> torch.Tensor:
    """[layers, slots, Hkv, D] float32, what is stored times its scale."""
    stored = by_slot(pages).float()
    return stored if scale is None else stored * by_slot(scale).unsqueeze(-1)


def filled(
    shape: CacheShape, blocks: int, rng: torch.Generator, *, form: str = "auto", dtype: torch.dtype = torch.float32
) -> PagedCache:
    """A cache in which no two entries are alike."""
    cache = allocate(shape, blocks, form=form, dtype=dtype, device=CPU)
    for pages in (cache.k, cache.v, cache.k_scale, cache.v_scale):
        if pages is not None:
            pages.copy_(torch.randn(pages.shape, generator=rng) * 40)
    return cache
