"""From a plan and its trees to the tensors of one pass."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import torch

from paceline.kernels.batch import Batch
from paceline.kernels.tree_attention import Layout
from paceline.spec.tree import TokenTree

from .page_table import PageTable
from .scheduler import Plan


def build_batch(plan: Plan, trees: Seq[TokenTree], device: torch.device) -> Batch:
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
        ancestors += [0] * n if tree.is_chain else map(_signed, tree.ancestors)
        if row.samples:
            sampled += range(starts[-1] + row.known - 1, starts[-1] + n)
        starts.append(starts[-1] + n)
    tables = [row.seq.blocks for row in plan.rows]
    widest = max(len(table) for table in tables)
    layout = Layout(
        row_starts=torch.tensor(starts, dtype=torch.int32),
        context_lens=torch.tensor([row.seq.num_computed for row in plan.rows], dtype=torch.int32),
        block_tables=torch.tensor([table + [0] * (widest - len(table)) for table in tables], dtype=torch.int32),
        causal=torch.tensor([tree.is_chain for tree in trees]),
        ancestors=torch.tensor(ancestors, dtype=torch.int64),
    )
    ids_, positions_, slots_, sampled_ = (
        torch.tensor(values, dtype=torch.int64, device=device) for values in (ids, positions, slots, sampled)
    )
    return Batch(ids_, positions_, slots_, sampled_, layout)


def _signed(word: int) -> int:
    """The same 64 bits as a signed integer: torch has no full unsigned arithmetic."""
    return word - (1 << 64) if word >> 63 else word
