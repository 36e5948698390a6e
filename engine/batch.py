"""From a plan and its trees to the arrays of one pass."""

from __future__ import annotations

from collections.abc import Sequence as Seq

from paceline.kernels.batch import Batch
from paceline.kernels.paging import slots_of
from paceline.spec.tree import TokenTree

from .scheduler import Plan


def build_batch(plan: Plan, trees: Seq[TokenTree]) -> Batch:
    """Node i of a sequence with c computed tokens stands in its slot c + i, at position c + depth(i).

    Sampled rows are those from the last known node on, in order: a sequence's walk starts at its first sampled row.
    """
    ids: list[int] = []
    positions: list[int] = []
    slots: list[int] = []
    sampled: list[int] = []
    ancestors: list[int] = []
    starts = [0]
    contexts: list[int] = []
    tables: list[list[int]] = []
    causal: list[bool] = []
    for row, tree in zip(plan.rows, trees, strict=True):
        c, n = row.seq.num_computed, len(tree)
        start = starts[-1]
        ids += tree.tokens
        slots += slots_of(row.seq.blocks, c, n)
        if tree.is_chain:
            positions += range(c, c + n)
            ancestors += [0] * n
        else:
            positions += [c + depth for depth in tree.depths]
            ancestors += tree.ancestors
        if row.samples:
            sampled += range(start + row.known - 1, start + n)
        starts.append(start + n)
        contexts.append(c)
        tables.append(row.seq.blocks)
        causal.append(tree.is_chain)
    return Batch.of(
        ids=ids,
        positions=positions,
        slots=slots,
        sampled=sampled,
        starts=starts,
        contexts=contexts,
        tables=tables,
        causal=causal,
        ancestors=ancestors,
    )
