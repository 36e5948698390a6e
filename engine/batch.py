"""From a plan and its trees to the arrays of one pass."""

from __future__ import annotations

from collections.abc import Sequence as Seq

from paceline.kernels.batch import Batch
from paceline.spec.draft_batch import Rows, batch_of
from paceline.spec.tree import TokenTree

from .scheduler import Plan


def build_batch(plan: Plan, trees: Seq[TokenTree]) -> Batch:
    """Node i of a sequence with c computed tokens stands in its slot c + i, at position c + depth(i).

    Sampled rows are those from the last known node on, in order: a sequence's walk starts at its first sampled row.
    """
    rows: list[Rows] = []
    sampled: list[int] = []
    for row, tree in zip(plan.rows, trees, strict=True):
        c, n = row.seq.num_computed, len(tree)
        positions = range(c, c + n) if tree.is_chain else [c + depth for depth in tree.depths]
        ancestors = None if tree.is_chain else tree.ancestors
        rows.append(Rows(tree.tokens, positions, first=0, start=c, blocks=row.seq.blocks, ancestors=ancestors))
        sampled.append(n - row.known + 1 if row.samples else 0)
    return batch_of(rows, sampled)
