from __future__ import annotations

import pytest
import torch

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache.reference import TensorCache
from paceline.kernels.linear import Norm
from paceline.kernels.rope_store import Rotation

SCALE = 1.3  # of the attention, as some RoPE variants have it
SLOTS = 96


def angles(head_dim: int) -> torch.Tensor:
    """[positions, D/2] in float64."""
    frequencies = 10000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    return torch.arange(400, dtype=torch.float64)[:, None] * frequencies


def rotated(x: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
    """x [R, heads, D] with pair i = (x[i], x[i + D/2]) taken as a complex number and turned by angle [R, D/2]."""
    half = x.shape[-1] // 2
    turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.full_like(angle, SCALE), angle)[:, None]
    return torch.cat((turned.real, turned.imag), dim=-1)


def normed(x: torch.Tensor, norm: Norm | None) -> torch.Tensor:
    if norm is None:
        return x
    return x / (x.pow(2).mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight.double()


@pytest.mark.parametrize("with_norms", [False, True])
@pytest.mark.parametrize(
    ("rows", "heads", "kv_heads", "head_dim"), [(1, 1, 1, 8), (3, 8, 1, 64), (16, 6, 3, 80), (70, 4, 2, 8)]
)
def test_rotates_and_stores(
    ops: Ops, rng: torch.Generator, rows: int, heads: int, kv_heads: int, head_dim: int, with_norms: bool
) -> None:
    angle = angles(head_dim)
    rotation = Rotation((angle.cos() * SCALE).float(), (angle.sin() * SCALE).float())
    qkv = torch.randn(rows, (heads + 2 * kv_heads) * head_dim, generator=rng)
    positions = torch.randint(400, (rows,), generator=rng)
    slots = torch.randperm(SLOTS, generator=rng)[:rows]
    k, v = (torch.randn(SLOTS, kv_heads, head_dim, generator=rng) for _ in range(2))
    before = k.clone(), v.clone()
    q_norm, k_norm = ((Norm(torch.rand(head_dim, generator=rng), 1e-5) if with_norms else None) for _ in range(2))

    cache = TensorCache(k[None], v[None])
    q = ops.rope_store(qkv, rotation, positions, slots, cache, 0, q_norm=q_norm, k_norm=k_norm)

    columns = qkv.double().view(rows, heads + 2 * kv_heads, head_dim)
    turn = angle[positions]
    for got, want in (
        (q, rotated(normed(columns[:, :heads], q_norm), turn)),
        (k[slots], rotated(normed(columns[:, heads : heads + kv_heads], k_norm), turn)),
    ):
        torch.testing.assert_close(got.double(), want, atol=2e-5, rtol=2e-5)
    assert torch.equal(v[slots], columns[:, heads + kv_heads :].float())
    others = torch.ones(SLOTS, dtype=torch.bool)
    others[slots] = False
    assert torch.equal(k[others], before[0][others])
    assert torch.equal(v[others], before[1][others])


@pytest.mark.parametrize("cached", [torch.bfloat16, torch.float16])
def test_cache_may_be_narrower_than_the_rows(ops: Ops, rng: torch.Generator, cached: torch.dtype) -> None:
    angle = angles(8)
    rotation = Rotation(angle.cos().float(), angle.sin().float())
    qkv = torch.randn(3, 3 * 8, generator=rng)
    wide, narrow = ([torch.zeros(4, 1, 8, dtype=dtype) for _ in range(2)] for dtype in (torch.float32, cached))
    positions, slots = torch.tensor([5, 6, 6]), torch.tensor([3, 0, 2])
    queries = [
        ops.rope_store(qkv, rotation, positions, slots, TensorCache(k[None], v[None]), 0) for k, v in (wide, narrow)
    ]
    assert torch.equal(*queries)
    assert queries[1].dtype == torch.float32
    for full, rounded in zip(wide, narrow, strict=True):
        assert torch.equal(full.to(cached), rounded)
