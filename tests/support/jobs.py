"""Sequences of one pass as attention sees them, and what it has to compute for them, in float64."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.tree_attention import Layout


@dataclass(frozen=True)
class Job:
    """One sequence of a step: parents of its new nodes, or None for a chain of `rows`."""

    context: int
    rows: int
    parents: tuple[int, ...] | None = None

    def line(self, node: int) -> list[int]:
        """The nodes that node sees, itself last."""
        if self.parents is None:
            return list(range(node + 1))
        line = []
        while node >= 0:
            line.append(node)
            node = self.parents[node]
        return line[::-1]

    @property
    def positions(self) -> list[int]:
        if self.parents is None:
            return list(range(self.context, self.context + self.rows))
        return [self.context + len(self.line(node)) - 1 for node in range(self.rows)]


def chain(context: int, rows: int) -> Job:
    return Job(context, rows)


def branching(context: int, rows: int, rng: torch.Generator) -> Job:
    parents = [-1, *(int(torch.randint(node, (), generator=rng)) for node in range(1, rows))]
    return Job(context, rows, tuple(parents))


def tables(jobs: Sequence[Job], blocks: int, rng: torch.Generator) -> list[list[int]]:
    """Block tables drawn from a shuffled pool."""
    pool = torch.randperm(blocks, generator=rng).tolist()
    return [[pool.pop() for _ in range(-(-(job.context + job.rows) // BLOCK_SIZE))] for job in jobs]


def layout_of(jobs: Sequence[Job], owned: Sequence[Sequence[int]]) -> Layout:
    widest = max(map(len, owned)) + 1  # one column of padding even for the longest
    starts = [0]
    for job in jobs:
        starts.append(starts[-1] + job.rows)
    return Layout(
        row_starts=np.array(starts, np.int32),
        context_lens=np.array([job.context for job in jobs], np.int32),
        block_tables=np.array([[*table, *[0] * (widest - len(table))] for table in owned], np.int32),
        causal=np.array([job.parents is None for job in jobs]),
        ancestors=np.array(
            [
                2**64 - 1 if job.parents is None else sum(1 << node for node in job.line(row))
                for job in jobs
                for row in range(job.rows)
            ],
            np.uint64,
        ).view(np.int64),
    )


def slots_of(table: Sequence[int], positions: Sequence[int]) -> list[int]:
    return [table[p // BLOCK_SIZE] * BLOCK_SIZE + p % BLOCK_SIZE for p in positions]


def new_slots(jobs: Sequence[Job], owned: Sequence[Sequence[int]]) -> list[int]:
    """Where the rows' own keys and values go."""
    return [
        slot
        for job, table in zip(jobs, owned, strict=True)
        for slot in slots_of(table, range(job.context, job.context + job.rows))
    ]


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, jobs: Sequence[Job], owned: Sequence[Sequence[int]]
) -> torch.Tensor:
    """Row by row in float64, over nothing but the slots the row may see.

    q [R, Hq, D]; k, v [slots, Hkv, D] -> [R, Hq * D]
    """
    out, row = torch.empty(q.shape, dtype=torch.float64), 0
    q, k, v = q.double(), k.double(), v.double()
    for job, table in zip(jobs, owned, strict=True):
        slots = torch.tensor(slots_of(table, range(job.context + job.rows)))
        for node in range(job.rows):
            seen = slots[[*range(job.context), *(job.context + other for other in job.line(node))]]
            queries = q[row].view(k.shape[1], -1, q.shape[2])  # heads that share a key head beside each other
            scores = torch.einsum("hgd,khd->hgk", queries, k[seen]) / q.shape[2] ** 0.5
            weights = (scores - scores.amax(-1, keepdim=True)).exp()
            weights /= weights.sum(-1, keepdim=True)
            out[row] = torch.einsum("hgk,khd->hgd", weights, v[seen]).view(out.shape[1:])
            row += 1
    return out.flatten(1)
