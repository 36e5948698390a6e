"""Triton implementation of `rope_store`: one launch, in which a warp takes a few heads of one row."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ..gpu.variant import TARGETS, Variant
from ..kv_cache.triton_impl import LIMITS, POINTERS, PagedCache
from ..linear import Norm
from ..paging import BLOCK_SIZE
from . import Rotation

_PAIRS = 256  # pairs of channels per warp: each of its 32 lanes reads two times 16 bytes of two-byte types
_WARPS = 1
# Least magnitude a head is scaled by: 127 over a subnormal is infinite. What smaller ones lose, no sum has room for.
_TINY = tl.constexpr(1e-30)
# Added to a float32 below 2^22 and taken away again, it leaves the nearest integer, ties to even.
_ROUND = tl.constexpr(1.5 * 2**23)


@triton.jit
def _halves(row, heads, lanes, mask, D: tl.constexpr):
    """Channels i and i + D/2 of some heads, each [T, P] float32."""
    first = row + heads[:, None] * D + lanes[None, :]
    a = tl.load(first, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(first + D // 2, mask=mask, other=0.0).to(tl.float32)
    return a, b


@triton.jit
def _normed(a, b, weight, lanes, inside, EPS: tl.constexpr, D: tl.constexpr):
    scale = tl.rsqrt(tl.sum(tl.fma(a, a, b * b), axis=1) / D + EPS)[:, None]
    weight_a = tl.load(weight + lanes, mask=inside, other=0.0)[None, :]
    weight_b = tl.load(weight + D // 2 + lanes, mask=inside, other=0.0)[None, :]
    return a * scale * weight_a, b * scale * weight_b


@triton.jit
def _rotated(a, b, cos, sin, position, lanes, inside, D: tl.constexpr):
    """Explicit fma: which of the two products is rounded first is not left to each target's compiler."""
    first = position * (D // 2)
    c = tl.load(cos + first + lanes, mask=inside, other=0.0)[None, :]
    s = tl.load(sin + first + lanes, mask=inside, other=0.0)[None, :]
    return tl.fma(a, c, -(b * s)), tl.fma(b, c, a * s)


@triton.jit
def _store(
    pages, scales, slot, heads, lanes, mask, a, b, KV_HEADS: tl.constexpr, D: tl.constexpr, LIMIT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Heads of one token to their slot, rounded once, from float32. LIMIT: of LIMITS, or 0 where nothing is scaled."""
    places = (slot // BLOCK * KV_HEADS + heads) * BLOCK + slot % BLOCK
    if LIMIT > 0:
        largest = tl.maximum(tl.max(tl.abs(a), axis=1), tl.max(tl.abs(b), axis=1))
        tl.store(scales + places, tl.div_rn(largest, LIMIT), mask=heads < KV_HEADS)
        inverse = tl.div_rn(LIMIT, tl.maximum(largest, _TINY))[:, None]
        if pages.dtype.element_ty == tl.int8:
            a, b = tl.fma(a, inverse, _ROUND) - _ROUND, tl.fma(b, inverse, _ROUND) - _ROUND
        else:  # the conversion rounds
            a, b = a * inverse, b * inverse
    first = pages + places[:, None] * D + lanes[None, :]
    tl.store(first, a.to(pages.dtype.element_ty), mask=mask)
    tl.store(first + D // 2, b.to(pages.dtype.element_ty), mask=mask)


@triton.jit
def _rope_store(
    qkv, cos, sin, positions, slots, q, k_pages, v_pages, k_scale, v_scale, q_weight, k_weight,
    Q_EPS: tl.constexpr, K_EPS: tl.constexpr, HEADS: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr,
    LIMIT: tl.constexpr, T: tl.constexpr, P: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Grid: rows, and in each the parts of T heads: queries, then keys, then values.

    P: a power of two that holds D/2 pairs; the lanes above them are masked.
    """
    Q_PARTS: tl.constexpr = (HEADS + T - 1) // T
    KV_PARTS: tl.constexpr = (KV_HEADS + T - 1) // T
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    lanes = tl.arange(0, P)
    inside = lanes < D // 2
    source = qkv + row * ((HEADS + 2 * KV_HEADS) * D)
    position = tl.maximum(tl.load(positions + row), 0).to(tl.int64)  # a padding row may stand nowhere
    if part < Q_PARTS:
        heads = part * T + tl.arange(0, T)
        mask = (heads < HEADS)[:, None] & inside[None, :]
        a, b = _halves(source, heads, lanes, mask, D)
        if q_weight is not None:
            a, b = _normed(a, b, q_weight, lanes, inside, Q_EPS, D)
        a, b = _rotated(a, b, cos, sin, position, lanes, inside, D)
        first = q + row * (HEADS * D) + heads[:, None] * D + lanes[None, :]
        tl.store(first, a.to(q.dtype.element_ty), mask=mask)
        tl.store(first + D // 2, b.to(q.dtype.element_ty), mask=mask)
    else:
        slot = tl.load(slots + row).to(tl.int64)
        if slot >= 0:
            heads = (part - Q_PARTS) % KV_PARTS * T + tl.arange(0, T)
            mask = (heads < KV_HEADS)[:, None] & inside[None, :]
            if part < Q_PARTS + KV_PARTS:
                a, b = _halves(source + HEADS * D, heads, lanes, mask, D)
                if k_weight is not None:
                    a, b = _normed(a, b, k_weight, lanes, inside, K_EPS, D)
                a, b = _rotated(a, b, cos, sin, position, lanes, inside, D)
                _store(k_pages, k_scale, slot, heads, lanes, mask, a, b, KV_HEADS, D, LIMIT, BLOCK)
            else:
                a, b = _halves(source + (HEADS + KV_HEADS) * D, heads, lanes, mask, D)
                _store(v_pages, v_scale, slot, heads, lanes, mask, a, b, KV_HEADS, D, LIMIT, BLOCK)


def _constants(
    heads: int, kv_heads: int, head_dim: int, stored: torch.dtype, q_norm: Norm | None, k_norm: Norm | None
) -> dict[str, Any]:
    pairs = triton.next_power_of_2(head_dim // 2)
    return {
        "Q_EPS": 0.0 if q_norm is None else q_norm.eps,
        "K_EPS": 0.0 if k_norm is None else k_norm.eps,
        "HEADS": heads,
        "KV_HEADS": kv_heads,
        "D": head_dim,
        "LIMIT": LIMITS.get(stored, 0.0),
        "T": max(1, min(_PAIRS // pairs, triton.next_power_of_2(heads))),
        "P": pairs,
        "BLOCK": BLOCK_SIZE,
    }


def rope_store(
    qkv: torch.Tensor,
    rotation: Rotation,
    positions: torch.Tensor,
    slots: torch.Tensor,
    cache: PagedCache,
    layer: int,
    *,
    q_norm: Norm | None = None,
    k_norm: Norm | None = None,
) -> torch.Tensor:
    """qkv is contiguous, D even, positions and slots are int32 or int64.

    A row whose slot is negative is padding: it stores nothing. Norm and rotation are computed in float32; queries are
    rounded once, to the dtype of qkv, keys and values once, to the cache's format.
    """
    rows, width = qkv.shape
    k, v = cache.k[layer], cache.v[layer]
    kv_heads, head_dim = k.shape[1], k.shape[3]
    heads = width // head_dim - 2 * kv_heads
    q = torch.empty(rows, heads, head_dim, dtype=qkv.dtype, device=qkv.device)
    constants = _constants(heads, kv_heads, head_dim, k.dtype, q_norm, k_norm)
    parts = triton.cdiv(heads, constants["T"]) + 2 * triton.cdiv(kv_heads, constants["T"])
    _rope_store[(rows, parts)](
        qkv,
        rotation.cos,
        rotation.sin,
        positions,
        slots,
        q,
        k,
        v,
        None if cache.k_scale is None else cache.k_scale[layer],
        None if cache.v_scale is None else cache.v_scale[layer],
        None if q_norm is None else q_norm.weight,
        None if k_norm is None else k_norm.weight,
        **constants,
        num_warps=_WARPS,
    )
    return q


def variants() -> list[Variant]:
    norm = Norm(None, 1e-6)
    shapes = {"smollm2": (9, 3, 64), "llama": (32, 8, 128)}
    cases = [
        ("smollm2", torch.bfloat16, None),
        ("llama", torch.bfloat16, None),
        ("llama", torch.bfloat16, norm),
        ("llama", torch.int8, None),
        ("llama", torch.float8_e4m3fn, None),
    ]
    return [_variant(shape, shapes[shape], stored, each) for shape, stored, each in cases]


def _variant(model: str, shape: tuple[int, int, int], stored: torch.dtype, norm: Norm | None) -> Variant:
    pages = POINTERS[stored]
    types = {"qkv": "*bf16", "q": "*bf16", "k_pages": pages, "v_pages": pages}
    types |= dict.fromkeys(("cos", "sin"), "*fp32") | dict.fromkeys(("positions", "slots"), "*i32")
    absent: dict[str, None] = {}
    for names, there in ((("k_scale", "v_scale"), stored in LIMITS), (("q_weight", "k_weight"), norm is not None)):
        if there:
            types |= dict.fromkeys(names, "*fp32")
        else:
            absent |= dict.fromkeys(names)
    return Variant(
        name=f"{model} {pages[1:]}" + (" norms" if norm else ""),
        kernel=_rope_store,
        types=types,
        constants=_constants(*shape, stored, norm, norm) | absent,
        aligned=tuple(types),
        num_warps=_WARPS,
        targets=("sm_90",) if stored == torch.float8_e4m3fn else TARGETS,
    )
