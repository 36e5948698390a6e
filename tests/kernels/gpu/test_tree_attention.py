"""`tree_attention` in Triton, interpreted: against float64, and bit for bit between ways to split the work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from jobs import Job, attention, branching, chain, layout_of, slots_of, tables

from paceline.kernels.kv_cache.triton_impl import PagedCache
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.tree_attention import Layout
from paceline.kernels.tree_attention.triton_impl import DeviceWork, to_device, tree_attention
from paceline.kernels.tree_attention.work import GROUP, TILE, UNIT, limits, plan

TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3}
REACH = UNIT * GROUP  # positions of a group


def paged(slots: torch.Tensor) -> torch.Tensor:
    """[slots, Hkv, …] -> [1, blocks, Hkv, BLOCK_SIZE, …]"""
    return slots.unflatten(0, (-1, BLOCK_SIZE)).transpose(1, 2).contiguous()[None]


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layout: Layout, programs: int = 8) -> torch.Tensor:
    work = to_device(plan(layout, programs=programs), q.device)
    return tree_attention(q, PagedCache(paged(k), paged(v)), 0, work)


def drawn(
    rng: torch.Generator, jobs: Sequence[Job], heads: tuple[int, int, int], dtype: torch.dtype, blocks: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q_heads, kv_heads, head_dim = heads
    k, v = (torch.randn(blocks * BLOCK_SIZE, kv_heads, head_dim, generator=rng).to(dtype) for _ in range(2))
    return torch.randn(sum(job.rows for job in jobs), q_heads, head_dim, generator=rng).to(dtype), k, v


def jobs_of(case: str, rng: torch.Generator) -> list[Job]:
    return {
        "first token": lambda: [chain(0, 1)],
        "around a unit": lambda: [chain(context, 1) for context in (UNIT - 2, UNIT - 1, UNIT, UNIT + 1)],
        "trees around a unit": lambda: [branching(context, 5, rng) for context in (UNIT - 3, UNIT - 1, UNIT, 2 * UNIT)],
        "around a group": lambda: [chain(context, 2) for context in (REACH - 1, REACH)],
        "trees around a group": lambda: [branching(REACH + d, 6, rng) for d in (-2, 0)],
        "prefill": lambda: [chain(0, 70), chain(31, 17)],
        "full tree": lambda: [branching(47, 64, rng)],
        "tree of bit 63 alone": lambda: [Job(3, 64, (-1, *[0] * 63))],
        "tree that is one deep line": lambda: [Job(30, 64, tuple(range(-1, 63)))],
        "tree with a deep line": lambda: [Job(30, 64, (-1, *range(62), 0))],
        "everything at once": lambda: [branching(100, 9, rng), chain(0, 33), chain(255, 1), branching(0, 20, rng)],
    }[case]()


CASES = (
    *("first token", "around a unit", "trees around a unit", "around a group", "trees around a group", "prefill"),
    *("full tree", "tree of bit 63 alone", "tree that is one deep line", "tree with a deep line", "everything at once"),
)


@pytest.mark.parametrize("case", CASES)
def test_equals_float64_however_the_work_is_split(rng: torch.Generator, case: str) -> None:
    jobs = jobs_of(case, rng)
    owned = tables(jobs, 230, rng)
    q, k, v = drawn(rng, jobs, (3, 1, 16), torch.float32, 230)
    layout = layout_of(jobs, owned)
    got = attend(q, k, v, layout, programs=1)
    torch.testing.assert_close(got.double(), attention(q, k, v, jobs, owned), atol=2e-5, rtol=2e-5)
    assert torch.equal(attend(q, k, v, layout, programs=1000), got)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(
    "heads", [(1, 1, 64), (3, 1, 80), (7, 1, 32), (8, 1, 128), (16, 1, 16), (20, 2, 16), (2, 2, 256)], ids=str
)
def test_equals_float64_for_heads_of_any_number_and_size(
    rng: torch.Generator, heads: tuple[int, int, int], dtype: torch.dtype
) -> None:
    jobs = [branching(61, 7, rng), chain(40, 1)]
    owned = tables(jobs, 10, rng)
    q, k, v = drawn(rng, jobs, heads, dtype, 10)
    got = attend(q, k, v, layout_of(jobs, owned))
    assert got.dtype == dtype
    want = attention(q, k, v, jobs, owned)
    torch.testing.assert_close(got.double(), want, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


def test_queries_may_be_a_view_and_the_cache_narrower(rng: torch.Generator) -> None:
    jobs = [branching(20, 6, rng)]
    owned = tables(jobs, 2, rng)
    q, k, v = drawn(rng, jobs, (4, 2, 16), torch.float32, 2)
    view = torch.cat([q, q + 1], 1)[:, :4]
    got = attend(view, k.half(), v.half(), layout_of(jobs, owned))
    want = attention(q, k.half(), v.half(), jobs, owned)
    torch.testing.assert_close(got.double(), want, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("stored", [torch.int8, torch.float8_e4m3fn], ids=str)
def test_scaled_cache(rng: torch.Generator, stored: torch.dtype) -> None:
    jobs = [branching(70, 6, rng)]
    owned = tables(jobs, 6, rng)
    q, k, v = drawn(rng, jobs, (4, 2, 16), torch.float32, 6)
    (k8, ks), (v8, vs) = ((x.mul(16).to(stored), torch.rand(x.shape[:2], generator=rng) + 0.1) for x in (k, v))
    work = to_device(plan(layout_of(jobs, owned), programs=8), q.device)
    got = tree_attention(q, PagedCache(paged(k8), paged(v8), paged(ks), paged(vs)), 0, work)
    want = attention(q, k8.double() * ks[..., None], v8.double() * vs[..., None], jobs, owned)
    torch.testing.assert_close(got.double(), want, atol=1e-3, rtol=1e-4)


@pytest.mark.parametrize(
    ("context", "dtype", "leaves"),
    [(UNIT - 5, torch.float32, (7, 11, 13)), (UNIT - 3, torch.float16, (7,)), (REACH - 3, torch.float32, (7,))],
    ids=str,
)
def test_row_has_the_bits_of_the_same_tokens_decoded_plainly(
    rng: torch.Generator, context: int, dtype: torch.dtype, leaves: tuple[int, ...]
) -> None:
    """A node of a tree, beside other sequences or alone, in a chunk of a prompt, and decoded one by one."""
    tree = Job(context, 14, (-1, 0, 0, 1, 3, 4, 5, 2, 6, 8, 9, 0, 10, 12))
    (table,) = tables([Job(context, tree.rows)], 70, rng)
    mates = [chain(3, 20), branching(UNIT + 3, 9, rng)]
    others = [[80 + i * 10 + b for b in range(9)] for i in range(2)]
    q, k, v = drawn(rng, [tree], (3, 1, 16), dtype, 100)
    q_mates = torch.randn(29, 3, 16, generator=rng).to(dtype)

    together = attend(torch.cat([q_mates, q]), k, v, layout_of([*mates, tree], [*others, table]), programs=1)[29:]
    alone = attend(q, k, v, layout_of([tree], [table]), programs=1000)
    assert torch.equal(together, alone)
    new = slots_of(table, range(context, context + tree.rows))
    for leaf in leaves:
        line = tree.line(leaf)
        plain_k, plain_v = k.clone(), v.clone()
        moved = [new[node] for node in line]  # to where a plain run has them
        plain_k[new[: len(line)]], plain_v[new[: len(line)]] = k[moved], v[moved]
        steps = [
            attend(q[[node]], plain_k, plain_v, layout_of([chain(context + i, 1)], [table]), programs=1 + 99 * (i % 2))
            for i, node in enumerate(line)
        ]
        assert torch.equal(torch.cat(steps), alone[line])
        chunk = attend(q[line], plain_k, plain_v, layout_of([chain(context, len(line))], [table]))
        assert torch.equal(chunk, alone[line])


def test_row_has_the_bits_it_has_in_a_long_prompt(rng: torch.Generator) -> None:
    """Long chunks are computed tile by tile, each over all its groups at once."""
    rows, context = 33, REACH + 10
    (table,) = tables([Job(context, rows)], 70, rng)
    q, k, v = drawn(rng, [Job(context, rows)], (1, 1, 16), torch.float32, 70)
    whole, split = (attend(q, k, v, layout_of([chain(context, rows)], [table]), programs=p) for p in (1, 6))
    assert torch.equal(whole, split)
    for row in (0, 32):
        assert torch.equal(attend(q[[row]], k, v, layout_of([chain(context + row, 1)], [table])), whole[[row]])


def test_slots_of_nobody_and_of_others_do_not_matter(rng: torch.Generator) -> None:
    jobs = [branching(21, 10, rng), chain(14, 5)]
    owned = tables(jobs, 12, rng)
    q, k, v = drawn(rng, jobs, (4, 2, 16), torch.float32, 12)
    clean = attend(q, k, v, layout_of(jobs, owned))
    free = torch.ones(len(k), dtype=torch.bool)
    for job, table in zip(jobs, owned, strict=True):
        free[slots_of(table, range(job.context + job.rows))] = False
    k[free], v[free] = 1e4, -1e4
    assert torch.equal(attend(q, k, v, layout_of(jobs, owned)), clean)


def test_padding_of_a_bucket_changes_nothing_and_yields_zeros(rng: torch.Generator) -> None:
    jobs = [branching(70, 7, rng), chain(12, 1)]
    owned = tables(jobs, 10, rng)
    q, k, v = drawn(rng, jobs, (4, 2, 16), torch.float32, 10)
    work = plan(layout_of(jobs, owned), programs=8)
    cache = PagedCache(paged(k), paged(v))
    exact = tree_attention(q, cache, 0, to_device(work, q.device))

    buffers = [np.full(shape, -1, np.int32) for shape in limits(16, len(work.items) + 5, 20)]
    for buffer, array in zip(buffers, work, strict=True):
        buffer[: len(array)] = array
    padded = torch.full((16, 4, 16), torch.nan)
    padded[:8] = q
    got = tree_attention(padded, cache, 0, DeviceWork(*map(torch.from_numpy, buffers)))
    assert torch.equal(got[:8], exact)
    assert torch.equal(got[8:], torch.zeros(8, 64))


def test_plan_fits_its_limits_and_computes_every_unit_of_every_row_once(rng: torch.Generator) -> None:
    cases = [jobs_of(case, rng) for case in CASES]
    for jobs in [*cases, [branching(1000 + i, 16, rng) for i in range(8)], [chain(5000, 1)], [chain(700, 200)]]:
        layout = layout_of(jobs, [list(range(-(-(job.context + job.rows) // BLOCK_SIZE))) for job in jobs])
        for programs in (1, 30, 1000):
            work = plan(layout, programs=programs)
            units: dict[int, list[int]] = {row: [] for row in range(len(work.positions))}
            for first, count, _, _, path, unit, more, _ in work.items.tolist():
                assert 0 < count <= TILE
                rows = range(first, first + count) if path < 0 else work.nodes[first : first + count].tolist()
                for row in rows:
                    units[row] += range(unit, unit + more)
            for row, position in enumerate(work.positions.tolist()):
                seen = [unit for unit in units[row] if unit <= position // UNIT]
                assert sorted(seen) == list(range(position // UNIT + 1))
            for array, shape in zip(work, limits(len(work.positions), len(work.items), len(work.tables)), strict=True):
                assert array.ndim == len(shape)
                assert all(size <= most for size, most in zip(array.shape, shape, strict=True))
