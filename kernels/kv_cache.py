"""The paged key/value cache: plain tensors addressed by slot, shared by every op that touches keys or values."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .paging import BLOCK_SIZE


@dataclass(frozen=True, slots=True)
class KVCache:
    """Keys and values of every layer; a slot holds one token's keys and values for one layer.

    k, v: [layers, slots, Hkv, D]
    """

    k: torch.Tensor
    v: torch.Tensor

    @classmethod
    def allocate(
        cls, *, layers: int, blocks: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device
    ) -> KVCache:
        shape = (layers, blocks * BLOCK_SIZE, kv_heads, head_dim)
        # Zeros, not empty: a masked lane multiplies whatever is there by zero, and NaN times zero is NaN.
        return cls(torch.zeros(shape, dtype=dtype, device=device), torch.zeros(shape, dtype=dtype, device=device))

    @staticmethod
    def block_bytes(*, layers: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> int:
        """Bytes one block takes over all layers, keys and values together."""
        return 2 * layers * BLOCK_SIZE * kv_heads * head_dim * dtype.itemsize
