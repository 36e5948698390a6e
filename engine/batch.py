"""From a plan and its trees to the arrays of one pass."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np

from paceline.kernels.batch import Batch
from paceline.kernels.tree_attention import Layout
from paceline.spec.tree import TokenTree

from .page_table import PageTable
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
    for row, tree in zip(plan.rows, trees, strict=True):
        c, n = row.seq.num_computed, len(tree)
        ids += tree.tokens
        positions += [c + depth for depth in tree.depths]
        slots += [PageTable.slot(row.seq, c + node) for node in range(n)]
        ancestors += [0] * n if tree.is_chain else tree.ancestors
        if row.samples:
            sampled += range(starts[-1] + row.known - 1, starts[-1] + n)
        starts.append(starts[-1] + n)
    return Batch(
        ids=np.array(ids, np.int64),
        positions=np.array(positions, np.int64),
        slots=np.array(slots, np.int64),
        sampled=np.array(sampled, np.int64),
        layout=Layout.of(
            starts,
            [row.seq.num_computed for row in plan.rows],
            [row.seq.blocks for row in plan.rows],
            [tree.is_chain for tree in trees],
            ancestors,
        ),
    )
