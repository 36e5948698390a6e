"""The paged key/value cache as ops see it, and the plain tensors the reference keeps it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch

from .paging import BLOCK_SIZE

Cache = Any  # made by `Allocate`, opaque to everyone but its backend


class Allocate(Protocol):
    def __call__(self, shape: CacheShape, blocks: int) -> Cache:
        """A cache of blocks * 16 slots, whose content is finite."""
        ...


class BlockBytes(Protocol):
    def __call__(self, shape: CacheShape) -> int:
        """Memory one block takes over all layers, keys and values together."""
        ...


@dataclass(frozen=True, slots=True)
class CacheShape:
    layers: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class TensorCache:
    """Keys and values of every layer; a slot holds one token's keys and values for one layer.

    k, v: [layers, slots, Hkv, D]
    """

    k: torch.Tensor
    v: torch.Tensor


def allocate(shape: CacheShape, blocks: int) -> TensorCache:
    sizes = (shape.layers, blocks * BLOCK_SIZE, shape.kv_heads, shape.head_dim)
    # Zeros, not empty: a masked lane multiplies whatever is there by zero, and NaN times zero is NaN.
    k, v = (torch.zeros(sizes, dtype=shape.dtype, device=shape.device) for _ in range(2))
    return TensorCache(k, v)


def block_bytes(shape: CacheShape) -> int:
    return 2 * shape.layers * BLOCK_SIZE * shape.kv_heads * shape.head_dim * shape.dtype.itemsize
