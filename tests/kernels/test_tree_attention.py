from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from jobs import Job, attention, branching, chain, layout_of, slots_of, tables

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.reference import TensorCache
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.rope_store import Rotation
from paceline.kernels.tree_attention import Layout

TOLERANCE = {torch.float32: 2e-5, torch.bfloat16: 2e-2}


def attend(ops: Ops, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, layout: Layout) -> torch.Tensor:
    return ops.tree_attention(q, TensorCache(k[None], v[None]), 0, ops.prepare(layout))


Jobs = Callable[[torch.Generator], list[Job]]

CASES: dict[str, Jobs] = {
    "first token": lambda rng: [chain(0, 1)],
    "plain step over a block border": lambda rng: [chain(15, 1), chain(16, 1), chain(17, 1), chain(300, 1)],
    "prefill": lambda rng: [chain(0, 70), chain(31, 65)],
    "small trees": lambda rng: [branching(context, 2 + context % 7, rng) for context in (0, 1, 15, 16, 33)],
    "full tree": lambda rng: [branching(47, 64, rng)],
    "tree of bit 63 alone": lambda rng: [Job(3, 64, (-1, *[0] * 63))],
    "tree that is one deep line": lambda rng: [Job(30, 64, tuple(range(-1, 63)))],
    "everything at once": lambda rng: [
        branching(100, 9, rng),
        chain(0, 33),
        chain(255, 1),
        branching(0, 64, rng),
        chain(16, 16),
    ],
}


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim", "dtype"),
    [
        (1, 1, 8, torch.float32),
        (3, 3, 80, torch.float32),
        (8, 1, 64, torch.float32),
        (6, 2, 64, torch.bfloat16),
    ],
    ids=str,
)
@pytest.mark.parametrize("case", CASES)
def test_equals_float64(
    ops: Ops, rng: torch.Generator, case: str, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    jobs = CASES[case](rng)
    owned = tables(jobs, 40, rng)
    k, v = (torch.randn(40 * BLOCK_SIZE, kv_heads, head_dim, generator=rng).to(dtype) for _ in range(2))
    q = torch.randn(sum(job.rows for job in jobs), heads, head_dim, generator=rng).to(dtype)
    got = attend(ops, q, k, v, layout_of(jobs, owned))
    assert got.dtype == dtype
    torch.testing.assert_close(
        got.double(), attention(q, k, v, jobs, owned), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype]
    )


def test_cache_may_be_narrower_than_the_queries(ops: Ops, rng: torch.Generator) -> None:
    jobs = [branching(20, 6, rng)]
    owned = tables(jobs, 2, rng)
    k, v = (torch.randn(2 * BLOCK_SIZE, 1, 8, generator=rng).half() for _ in range(2))
    q = torch.randn(6, 2, 8, generator=rng)
    got = attend(ops, q, k, v, layout_of(jobs, owned))
    torch.testing.assert_close(got.double(), attention(q, k, v, jobs, owned), atol=2e-5, rtol=2e-5)


def test_slots_of_nobody_and_of_others_do_not_matter(ops: Ops, rng: torch.Generator) -> None:
    jobs = [branching(21, 10, rng), chain(14, 5)]
    owned = tables(jobs, 12, rng)
    k, v = (torch.randn(12 * BLOCK_SIZE, 2, 8, generator=rng) for _ in range(2))
    q = torch.randn(15, 4, 8, generator=rng)
    clean = attend(ops, q, k, v, layout_of(jobs, owned))
    free = torch.ones(12 * BLOCK_SIZE, dtype=torch.bool)
    for job, table in zip(jobs, owned, strict=True):
        free[slots_of(table, range(job.context + job.rows))] = False
    k[free], v[free] = 1e4, -1e4
    assert torch.equal(attend(ops, q, k, v, layout_of(jobs, owned)), clean)


def test_siblings_do_not_see_each_other(ops: Ops, rng: torch.Generator) -> None:
    """Of 0 - 1 - 3 and 0 - 2 - 4, changing node 1 changes 1 and 3 alone."""
    jobs = [Job(18, 5, (-1, 0, 0, 1, 2))]
    owned = tables(jobs, 3, rng)
    k, v = (torch.randn(3 * BLOCK_SIZE, 1, 8, generator=rng) for _ in range(2))
    q = torch.randn(5, 2, 8, generator=rng)
    before = attend(ops, q, k, v, layout_of(jobs, owned))
    (slot,) = slots_of(owned[0], [18 + 1])
    k[slot] += 3
    v[slot] -= 3
    after = attend(ops, q, k, v, layout_of(jobs, owned))
    assert [bool((before[i] != after[i]).any()) for i in range(5)] == [False, True, False, True, False]


def test_row_never_depends_on_batch_mates(ops: Ops, rng: torch.Generator) -> None:
    jobs = [branching(40, 7, rng), chain(90, 1), chain(0, 30), branching(3, 64, rng)]
    owned = tables(jobs, 30, rng)
    k, v = (torch.randn(30 * BLOCK_SIZE, 2, 16, generator=rng) for _ in range(2))
    q = torch.randn(sum(job.rows for job in jobs), 4, 16, generator=rng)
    together = attend(ops, q, k, v, layout_of(jobs, owned)).split([job.rows for job in jobs])
    alone = [
        attend(ops, rows, k, v, layout_of([job], [table]))
        for rows, job, table in zip(q.split([job.rows for job in jobs]), jobs, owned, strict=True)
    ]
    for one, other in zip(together, alone, strict=True):
        assert torch.equal(one, other)


HEADS, KV_HEADS, HEAD_DIM = 4, 2, 8


def compute(
    ops: Ops,
    cache: TensorCache,
    rotation: Rotation,
    job: Job,
    depths: Sequence[int],
    table: Sequence[int],
    qkv: torch.Tensor,
) -> torch.Tensor:
    """Store and attend, as a decoder's layer does."""
    slots = torch.tensor(slots_of(table, range(job.context, job.context + job.rows)))
    positions = torch.tensor([job.context + depth for depth in depths])
    q = ops.rope_store(qkv, rotation, positions, slots, cache, 0)
    return attend(ops, q, cache.k[0], cache.v[0], layout_of([job], [table]))


@pytest.mark.parametrize("nodes", [2, 7, 23, 64])
def test_node_equals_the_same_tokens_decoded_plainly(ops: Ops, rng: torch.Generator, nodes: int) -> None:
    """Every node of a tree against a plain run, one row per step, along its ancestors; then the deepest line is moved
    into place and a further token must see it as the plain run does.
    """
    context = 29
    angle = torch.arange(200)[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001])
    rotation = Rotation(angle.cos(), angle.sin())
    width = (HEADS + 2 * KV_HEADS) * HEAD_DIM
    prompt, guesses, following = (torch.randn(rows, width, generator=rng) for rows in (context, nodes, 1))
    tree = branching(context, nodes, rng)
    depths = [len(tree.line(node)) - 1 for node in range(nodes)]
    (table,) = tables([Job(context, nodes + 1)], 8, rng)

    def prefilled() -> TensorCache:
        cache: TensorCache = ops.allocate(CacheShape(1, KV_HEADS, HEAD_DIM), 8)
        compute(ops, cache, rotation, chain(0, context), range(context), table, prompt)
        return cache

    def plain(line: Sequence[int]) -> torch.Tensor:
        """The row after prompt and line, its tokens fed one by one: the last output."""
        cache, rows = prefilled(), [*guesses[list(line)], following[0]]
        outputs = [
            compute(ops, cache, rotation, chain(context + i, 1), [0], table, row[None]) for i, row in enumerate(rows)
        ]
        return torch.cat(outputs)

    cache = prefilled()
    out = compute(ops, cache, rotation, tree, depths, table, guesses)
    leaves = set(range(nodes)) - set(tree.parents or ())
    for leaf in leaves:
        line = tree.line(leaf)
        torch.testing.assert_close(out[line], plain(line)[:-1], atol=1e-5, rtol=1e-5)

    path = tree.line(max(leaves, key=lambda leaf: depths[leaf]))
    source, target = (np.array(slots_of(table, [context + i for i in where])) for where in (path, range(len(path))))
    ops.move_kv(cache, source, target)
    after = compute(ops, cache, rotation, chain(context + len(path), 1), [0], table, following)
    torch.testing.assert_close(after[0], plain(path)[-1], atol=1e-5, rtol=1e-5)
