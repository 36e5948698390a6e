"""The pages the Triton kernels keep keys and values in."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..paging import BLOCK_SIZE
from . import CacheShape

_STORED = {"bf16": torch.bfloat16, "f16": torch.float16, "int8": torch.int8, "fp8": torch.float8_e4m3fn}

# Largest stored magnitude of the formats that keep a scale beside the values.
LIMITS = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}

# As Triton spells a pointer to what a cache may hold.
POINTERS = {
    torch.float32: "*fp32",
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.int8: "*i8",
    torch.float8_e4m3fn: "*fp8e4nv",
}


@dataclass(frozen=True, slots=True)
class PagedCache:
    """Keys and values of every layer. A page of one head is contiguous: attention reads it as a tile.

    Slot s of head h stands at [layer, s // 16, h, s % 16].

    k, v: [layers, blocks, Hkv, 16, D] bfloat16, float16, float32, int8 or float8_e4m3fn
    k_scale, v_scale: [layers, blocks, Hkv, 16] float32 beside int8 and float8_e4m3fn, None beside others: the value of
    channel d is k[..., d] * k_scale.
    """

    k: torch.Tensor
    v: torch.Tensor
    k_scale: torch.Tensor | None = None
    v_scale: torch.Tensor | None = None


def _stored(form: str, dtype: torch.dtype) -> torch.dtype:
    return dtype if form == "auto" else _STORED[form]


def allocate(shape: CacheShape, blocks: int, *, form: str, dtype: torch.dtype, device: torch.device) -> PagedCache:
    """form: "bf16", "f16", "int8", "fp8", or "auto" for dtype, the one activations are in."""
    stored = _stored(form, dtype)
    slots = (shape.layers, blocks, shape.kv_heads, BLOCK_SIZE)
    # Zeros, not empty: a masked lane multiplies whatever is there by zero, and NaN times zero is NaN.
    k, v = (torch.zeros(*slots, shape.head_dim, dtype=stored, device=device) for _ in range(2))
    if stored not in LIMITS:
        return PagedCache(k, v)
    k_scale, v_scale = (torch.zeros(slots, dtype=torch.float32, device=device) for _ in range(2))
    return PagedCache(k, v, k_scale, v_scale)


def block_bytes(shape: CacheShape, *, form: str, dtype: torch.dtype) -> int:
    stored = _stored(form, dtype)
    slot = shape.head_dim * stored.itemsize + (torch.float32.itemsize if stored in LIMITS else 0)
    return 2 * shape.layers * shape.kv_heads * BLOCK_SIZE * slot
