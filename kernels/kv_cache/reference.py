"""The plain tensors the reference keeps keys and values in."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..paging import BLOCK_SIZE
from . import CacheShape


@dataclass(frozen=True, slots=True)
class TensorCache:
    """Keys and values of every layer; a slot holds one token's keys and values for one layer.

    k, v: [layers, slots, Hkv, D]
    """

    k: torch.Tensor
    v: torch.Tensor


def allocate(shape: CacheShape, blocks: int, dtype: torch.dtype, device: torch.device) -> TensorCache:
    sizes = (shape.layers, blocks * BLOCK_SIZE, shape.kv_heads, shape.head_dim)
    # Zeros, not empty: a masked lane multiplies whatever is there by zero, and NaN times zero is NaN.
    k, v = (torch.zeros(sizes, dtype=dtype, device=device) for _ in range(2))
    return TensorCache(k, v)


def block_bytes(shape: CacheShape, dtype: torch.dtype) -> int:
    return 2 * shape.layers * BLOCK_SIZE * shape.kv_heads * shape.head_dim * dtype.itemsize
