"""Keys and values in the native cache: how they get there, where they are moved, and what stays out of sight."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from jobs import attention, branching, chain, tables
from native_ops import (
    KV,
    Floats,
    Program,
    batch_of,
    held,
    identity_rotation,
    random_kv,
    random_queries,
    rms_normed,
    rows_only,
)

from paceline.kernels.paging import BLOCK_SIZE


def read_values(
    module: ModuleType, pool: Any, cache: Any, blocks: int, heads: int, head_dim: int, layer: int
) -> Floats:
    """First values of every block, [blocks, heads * head_dim]: what a lone key's attention returns is its value."""
    jobs, owned = [chain(0, 1)] * blocks, [[block] for block in range(blocks)]
    program = Program(module, pool)
    qkv = program.feed(np.zeros((blocks, 3 * heads * head_dim), np.float32))
    out = program.native.value(heads * head_dim, False)
    program.native.attention(qkv, cache, layer, out)
    program.run(batch_of(jobs, owned))
    return program.read(out, blocks)


@pytest.mark.parametrize("with_norms", [False, True])
@pytest.mark.parametrize("kv", KV)
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(1, 1, 16), (8, 1, 64), (6, 3, 80), (4, 2, 128)])
def test_rotates_normalises_and_stores(
    module: ModuleType, pools: dict[int, Any], heads: int, kv_heads: int, head_dim: int, kv: str, with_norms: bool
) -> None:
    """70 rows at scattered positions and slots; each then attends over a few others through their blocks."""
    random = np.random.default_rng(head_dim)
    rng = torch.Generator().manual_seed(head_dim)
    rows, positions, half = 70, 400, head_dim // 2
    frequencies = 10000.0 ** (-np.arange(half) / half)
    angles = np.arange(positions)[:, None] * frequencies * 1.0
    cos, sin = (np.ascontiguousarray((f(angles) * 1.3).astype(np.float32)) for f in (np.cos, np.sin))
    rotation = module.Rotation(cos.reshape(-1), sin.reshape(-1), positions)
    x = random.standard_normal((rows, heads + 2 * kv_heads, head_dim), np.float32)
    q_norm, k_norm = ((random.random(head_dim, np.float32) + 0.5) if with_norms else None for _ in range(2))
    jobs = [chain(300, 20), branching(5, 40, rng), chain(0, 10)]
    owned = tables(jobs, 30, rng)
    batch = batch_of(jobs, owned)
    at = batch.positions

    cache = module.Cache(getattr(module.KvFormat, kv), 3, 30, kv_heads, head_dim)
    program = Program(module, pools[3])
    qkv = program.feed(x.reshape(rows, -1))
    program.native.rope_store(qkv, cache, 1, rotation, q_norm, 1e-5, k_norm, 1e-6)
    out = program.native.value(heads * head_dim, False)
    program.native.attention(qkv, cache, 1, out)
    program.run(batch)

    def turned(part: Floats, norm: Floats | None, eps: float) -> Any:
        part = part if norm is None else rms_normed(part, norm, eps)
        a, b = part[..., :half].astype(np.float64), part[..., half:].astype(np.float64)
        c, s = cos[at][:, None].astype(np.float64), sin[at][:, None].astype(np.float64)
        return np.concatenate((a * c - b * s, b * c + a * s), axis=-1)

    q, k = turned(x[:, :heads], q_norm, 1e-5), turned(x[:, heads:-kv_heads], k_norm, 1e-6)
    np.testing.assert_allclose(
        program.read(qkv, rows).reshape(x.shape)[:, :heads], q / head_dim**0.5, rtol=2e-5, atol=2e-5
    )
    # What was never stored is zero: so are the keys and values of the first chain's context.
    stored_k, stored_v = (np.zeros((30 * BLOCK_SIZE, kv_heads, head_dim), np.float32) for _ in range(2))
    stored_k[batch.slots], stored_v[batch.slots] = k.astype(np.float32), x[:, -kv_heads:]
    want = attention(torch.from_numpy(q), held(stored_k, kv), held(stored_v, kv), jobs, owned)
    # A key at half a step may be rounded either way.
    np.testing.assert_allclose(program.read(out, rows), want.numpy(), rtol=1e-3, atol={"f16": 2e-3, "int8": 3e-2}[kv])
    for other in (0, 2):
        assert not read_values(module, pools[1], cache, 30, kv_heads, head_dim, other).any(), (
            "another layer was written"
        )


@pytest.mark.parametrize("kv", KV)
def test_moves_read_before_they_write_in_every_layer(module: ModuleType, pool: Any, kv: str) -> None:
    """Swaps, chains such as 3 -> 2, 2 -> 1, and more moves than a tile has places."""
    rng = torch.Generator().manual_seed(8)
    layers, heads, head_dim, blocks = 2, 2, 16, 48
    for count in (0, 1, 2, 15, 16, 17, 40):
        caches = [module.Cache(getattr(module.KvFormat, kv), layers, blocks, heads, head_dim) for _ in range(2)]
        k, v = random_kv(blocks, heads, head_dim, seed=count)
        # The first slot of each block: what `read_values` sees.
        source, target = (torch.randperm(blocks, generator=rng)[:count] * BLOCK_SIZE for _ in range(2))
        moved_k, moved_v = k.copy(), v.copy()
        moved_k[target], moved_v[target] = k[source], v[source]
        for cache, (keys, values) in zip(caches, [(k, v), (moved_k, moved_v)], strict=True):
            for layer in range(layers):
                program = Program(module, pool)
                qkv = program.feed(np.concatenate((keys, keys, values * (layer + 1)), axis=1).reshape(len(k), -1))
                rotation = identity_rotation(module, len(k), head_dim)
                program.native.rope_store(qkv, cache, layer, rotation, None, 0.0, None, 0.0)
                program.run(rows_only(len(k)))
        caches[0].move(source.numpy(), target.numpy())
        for layer in range(layers):
            one, other = (read_values(module, pool, cache, blocks, heads, head_dim, layer) for cache in caches)
            assert one.any()
            assert np.array_equal(one, other)
            # Keys show in what attention makes of several of them.
            q = random_queries([chain(0, 1)] * 3, heads, head_dim)
            seen = []
            for cache in caches:
                program = Program(module, pool)
                qkv = program.feed(np.concatenate((q, q, q), axis=1).reshape(3, -1))
                out = program.native.value(heads * head_dim, False)
                program.native.attention(qkv, cache, layer, out)
                jobs = [chain(300, 1), chain(250, 1), chain(20, 1)]
                program.run(batch_of(jobs, [list(range(20)), list(range(20, 40)), list(range(30, 48))]))
                seen.append(program.read(out, 3))
            assert np.array_equal(*seen)


def test_neighbours_that_broke_do_not_matter(module: ModuleType, pool: Any) -> None:
    """A block whose last owner stored infinities or NaN is handed on: masked keys still count for nothing."""
    for kv in KV:
        cache = module.Cache(getattr(module.KvFormat, kv), 1, 2, 1, 16)
        rotation = identity_rotation(module, 64, 16)
        outputs = []
        for fill in (0.0, np.inf, -np.inf, np.nan, 3e38):
            broken = np.full((32, 48), fill, np.float32)
            program = Program(module, pool)
            program.native.rope_store(program.feed(broken), cache, 0, rotation, None, 0.0, None, 0.0)
            program.run(rows_only(32))
            program = Program(module, pool)
            qkv = program.feed(np.random.default_rng(1).standard_normal((5, 48), np.float32))
            program.native.rope_store(qkv, cache, 0, rotation, None, 0.0, None, 0.0)
            out = program.native.value(16, False)
            program.native.attention(qkv, cache, 0, out)
            program.run(rows_only(5))
            outputs.append(program.read(out, 5))
        assert np.isfinite(outputs[0]).all()
        for output in outputs[1:]:
            assert np.array_equal(output, outputs[0]), kv
