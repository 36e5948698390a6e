"""Attention over the native cache against float64, and its bits against its own in any batch."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from jobs import Job, attention, branching, chain, slots_of, tables
from native_ops import KV, Attention, Floats, held, random_kv, random_queries

from paceline.kernels.paging import BLOCK_SIZE

CHUNK = 256  # keys that one task takes: partial results are merged beyond that


def cases(rng: torch.Generator) -> dict[str, list[Job]]:
    return {
        "first token": [chain(0, 1)],
        "plain steps around a block's and a chunk's border": [
            chain(context, 1) for context in (14, 15, 16, 17, CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 1)
        ],
        "a prompt in one piece, and one that goes on": [chain(0, 130), chain(31, 65)],
        "a chunk over the border of tasks": [chain(CHUNK - 5, 12), chain(2 * CHUNK - 16, 17)],
        "small trees": [branching(context, 2 + context % 7, rng) for context in (0, 1, 15, 16, 33)],
        "trees at the border of tasks": [branching(context, 20, rng) for context in (CHUNK - 9, CHUNK, CHUNK + 1)],
        "full tree": [branching(47, 64, rng)],
        "tree of bit 63 alone": [Job(3, 64, (-1, *[0] * 63))],
        "tree that is one deep line": [Job(CHUNK - 30, 64, tuple(range(-1, 63)))],
        "everything at once": [
            branching(100, 9, rng),
            chain(0, 33),
            chain(255, 1),
            branching(0, 64, rng),
            chain(600, 16),
            branching(530, 7, rng),
        ],
    }


BLOCKS = 110


@functools.cache
def solved_cases(
    heads: int, kv_heads: int, head_dim: int, kv: str
) -> list[tuple[str, list[Job], list[list[int]], Floats, Floats]]:
    """(name, jobs, tables, queries, results): the same for every instruction set."""
    rng = torch.Generator().manual_seed(heads)
    k, v = (held(side, kv) for side in random_kv(BLOCKS, kv_heads, head_dim, seed=heads))
    solved = []
    for name, jobs in cases(rng).items():
        owned, q = tables(jobs, BLOCKS, rng), random_queries(jobs, heads, head_dim)
        solved.append((name, jobs, owned, q, attention(torch.from_numpy(q), k, v, jobs, owned).numpy()))
    return solved


SHAPES = [(1, 1, 16), (2, 2, 64), (6, 3, 80), (3, 1, 96), (8, 2, 128), (5, 1, 64), (12, 2, 16), (7, 1, 80), (8, 1, 16)]


@pytest.mark.parametrize("kv", KV)
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), SHAPES, ids=lambda value: str(value))
def test_equals_float64(
    module: ModuleType, pools: dict[int, Any], heads: int, kv_heads: int, head_dim: int, kv: str
) -> None:
    """Every size of group from 1 to 8, block tables shuffled, one cache for all cases."""
    k, v = random_kv(BLOCKS, kv_heads, head_dim, seed=heads)
    over = {threads: Attention(module, pools[threads], kv, k, v) for threads in (1, 2, 3)}
    for index, (name, jobs, owned, q, want) in enumerate(solved_cases(heads, kv_heads, head_dim, kv)):
        got = over[1 + index % 3](q, jobs, owned)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("kv", KV)
def test_long_contexts_equal_float64(module: ModuleType, pools: dict[int, Any], kv: str) -> None:
    rng = torch.Generator().manual_seed(1)
    heads, kv_heads, head_dim, blocks = 3, 1, 64, 900
    k, v = random_kv(blocks, kv_heads, head_dim, seed=2)
    k[7 * BLOCK_SIZE] *= 8  # one key that stands out, so that chunks differ in their largest score
    jobs = [chain(5000, 1), branching(4095, 6, rng), chain(2047, 3), branching(1023, 2, rng)]
    owned = tables(jobs, blocks, rng)
    q = random_queries(jobs, heads, head_dim)
    want = attention(torch.from_numpy(q), held(k, kv), held(v, kv), jobs, owned)
    for pool in pools.values():
        got = Attention(module, pool, kv, k, v)(q, jobs, owned)
        np.testing.assert_allclose(got, want.numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("kv", KV)
def test_cache_rounding_is_small(module: ModuleType, pool: Any, kv: str) -> None:
    """Against the keys and values as they came in."""
    jobs, owned = [chain(300, 4)], [list(range(20))]
    k, v = random_kv(20, 2, 64, seed=5)
    q = random_queries(jobs, 4, 64) / 2
    got = Attention(module, pool, kv, k, v)(q, jobs, owned)
    want = attention(torch.from_numpy(q), torch.from_numpy(k), torch.from_numpy(v), jobs, owned).numpy()
    error = np.sqrt(((got - want) ** 2).mean() / (want**2).mean())
    assert error < {"f16": 1e-3, "int8": 3e-2}[kv]


@pytest.mark.parametrize("kv", KV)
def test_scores_far_apart_and_all_alike(module: ModuleType, pool: Any, kv: str) -> None:
    """One key takes everything; or none stands out: neither overflows nor divides by zero."""
    k, v = random_kv(40, 1, 16, seed=6)
    k[:] = 0
    jobs, owned = [chain(600, 1)], [list(range(38))]
    q = np.full((1, 1, 16), 1000.0, np.float32)
    even = Attention(module, pool, kv, k, v)(q, jobs, owned)
    np.testing.assert_allclose(even, held(v, kv)[:601].double().mean(0).numpy(), atol=1e-5)
    k[123] = 100.0
    lone = Attention(module, pool, kv, k, v)(q, jobs, owned)
    np.testing.assert_allclose(lone, held(v, kv)[123].numpy(), rtol=1e-6)


def line_cache(
    module: ModuleType,
    pool: Any,
    kv: str,
    k: Floats,
    v: Floats,
    job: Job,
    node: int,
    table: list[int],
    spare: list[int],
) -> tuple[Attention, list[int]]:
    """The context and a node's line as plain decoding would have stored them, in blocks of its own."""
    line = job.line(node)
    k, v = k.copy(), v.copy()
    origin = slots_of(table, [*range(job.context), *(job.context + other for other in line)])
    target = slots_of(spare, range(job.context + len(line)))
    k[target], v[target] = k[origin], v[origin]
    return Attention(module, pool, kv, k, v), spare


@pytest.mark.parametrize("kv", KV)
@pytest.mark.parametrize("context", [0, 13, 47, CHUNK - 4, CHUNK + 3, 2 * CHUNK - 1])
def test_a_node_has_the_bits_of_plain_decoding(
    module: ModuleType, pools: dict[int, Any], context: int, kv: str
) -> None:
    """A tree of 24 nodes: each against one row alone, whose line stands in place, in other blocks."""
    rng = torch.Generator().manual_seed(context)
    blocks = 100
    k, v = random_kv(blocks, 2, 16, seed=context)
    tree = branching(context, 24, rng)
    shuffled = torch.randperm(blocks, generator=rng).tolist()
    table, spare = shuffled[: blocks // 2], shuffled[blocks // 2 :]
    q = random_queries([tree], 6, 16)
    got = Attention(module, pools[2], kv, k, v)(q, [tree], [table])
    for node in range(tree.rows):
        plain, own = line_cache(module, pools[1], kv, k, v, tree, node, table, spare)
        position = context + len(tree.line(node)) - 1
        assert np.array_equal(plain(q[node : node + 1], [chain(position, 1)], [own])[0], got[node]), node


@pytest.mark.parametrize("kv", KV)
def test_a_row_has_the_same_bits_in_any_chunk_and_beside_any_others(
    module: ModuleType, pools: dict[int, Any], kv: str
) -> None:
    rng = torch.Generator().manual_seed(3)
    blocks, rows = 130, 600
    k, v = random_kv(blocks, 2, 16, seed=3)
    owned = tables([chain(0, rows), branching(290, 30, rng), chain(511, 9)], blocks, rng)
    q = random_queries([chain(0, rows)], 6, 16)
    over = {threads: Attention(module, pools[threads], kv, k, v) for threads in (1, 2, 3)}
    whole = over[1](q, [chain(0, rows)], owned[:1])
    for threads, attend in over.items():
        start = 0
        while start < rows:
            count = min(rows - start, int(torch.randint(1, 140, (), generator=rng)))
            # As a chain, with other sequences before and after it; and, where it fits, as a tree that is a line.
            mates = [branching(290, 30, rng), chain(start, count), chain(511, 9)]
            around = np.concatenate((q[:30], q[start : start + count], q[-9:]))
            together = attend(around, mates, [owned[1], owned[0], owned[2]])
            assert np.array_equal(together[30 : 30 + count], whole[start : start + count]), (threads, start, count)
            if count <= 64:
                line = Job(start, count, tuple(range(-1, count - 1)))
                alone = attend(q[start : start + count], [line], owned[:1])
                assert np.array_equal(alone, whole[start : start + count]), (threads, start, count)
            start += count


@pytest.mark.parametrize("kv", KV)
@pytest.mark.parametrize("context", [1, *(n * CHUNK + by for n in (1, 2, 4) for by in (-1, 0, 1))])
def test_rows_together_have_the_same_bits_as_each_alone(
    module: ModuleType, pools: dict[int, Any], context: int, kv: str
) -> None:
    """Few rows of one sequence, as a chain and as a tree that is a line: in ever other numbers."""
    blocks, most = 70, 16
    k, v = random_kv(blocks, 1, 64, seed=context)
    table = list(range(blocks))
    q = random_queries([chain(context, most)], 3, 64)
    one, two = (Attention(module, pools[threads], kv, k, v) for threads in (1, 2))
    alone = np.concatenate([one(q[r : r + 1], [chain(context + r, 1)], [table]) for r in range(most)])
    for rows in (2, 3, 4, 5, 7, 8, 9, 16):
        for job in (chain(context, rows), Job(context, rows, tuple(range(-1, rows - 1)))):
            assert np.array_equal(two(q[:rows], [job], [table]), alone[:rows]), rows
