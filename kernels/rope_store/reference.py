"""Plain torch implementation of `rope_store`."""

from __future__ import annotations

import torch

from ..kv_cache.reference import TensorCache
from ..linear import Norm
from ..linear.reference import rms_norm
from . import Rotation


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x [R, heads, D], cos and sin [R, 1, D/2]: pair i is (x[i], x[i + D/2])."""
    a, b = x.float().chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


def rope_store(
    qkv: torch.Tensor,
    rotation: Rotation,
    positions: torch.Tensor,
    slots: torch.Tensor,
    cache: TensorCache,
    layer: int,
    *,
    q_norm: Norm | None = None,
    k_norm: Norm | None = None,
) -> torch.Tensor:
    k, v = cache.k[layer], cache.v[layer]
    rows, kv_heads, head_dim = qkv.shape[0], k.shape[1], k.shape[2]
    heads = qkv.view(rows, -1, head_dim)
    queries = heads.shape[1] - 2 * kv_heads
    q, new_k, new_v = torch.split(heads, [queries, kv_heads, kv_heads], dim=1)
    if q_norm is not None:
        q = rms_norm(q, q_norm.weight, q_norm.eps)
    if k_norm is not None:
        new_k = rms_norm(new_k, k_norm.weight, k_norm.eps)
    cos = rotation.cos.index_select(0, positions).unsqueeze(1)
    sin = rotation.sin.index_select(0, positions).unsqueeze(1)
    k.index_copy_(0, slots, _rotate(new_k, cos, sin).to(k.dtype))
    v.index_copy_(0, slots, new_v.to(v.dtype))
    return _rotate(q, cos, sin)
