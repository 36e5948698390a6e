"""What the Triton kernels of `tree_attention` compute in one step, planned on the host.

Keys are seen by absolute position, in units of 64 positions and groups of 16 units, both aligned at position 0:

    position   0 ........ 63 | 64 ...... 127 | ...             | 960 .... 1023 | 1024 ...
    unit             0       |       1       | ...             |      15       |  16
    group    0 --------------------------------------------------------------- | 1

A row at position p sees the units 0 … p // 64. The units of a group are folded in order into the group's state, the
groups in order into the total. Where one kernel folds and where it leaves a partial state for the next never changes
this order, so the split into items of work below may depend on the batch while the bits of a row cannot.

An item is up to 16 nodes of one sequence and a run of units. Rows side by side share items up to where all they see is
committed. From there on (the tail) a tree is taken apart into its leaf paths: each gathers its keys by position through
the slots of its own nodes, and each node is computed by one path that contains it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..paging import BLOCK_SIZE, slots_of
from . import Layout

UNIT = 64  # positions
GROUP = 16  # units
TILE = 16  # nodes one item computes, at most
NEVER = 2**31 - 1  # a position no sequence reaches

_WORD = 2**64 - 1
# A tree of n nodes has leaf paths of at most (n + 1)^2 / 4 nodes together (a line with a fan of leaves at its end):
# 16.5 per node at the most nodes a word can hold.
_PATH_NODES = 17


class Work(NamedTuple):
    """I items, R rows; all arrays are int32. Buffers larger than the arrays are padded with -1.

    A partial state belongs to one row; it is kept at an index that is an offset plus the row.
    """

    # [I, 8]: first row, or where `nodes` begins for a path; nodes; where `tables` begins; position from which on slots
    # come from `paths`; where `paths` begins, -1 if nowhere; first unit; units; offset of the partial states
    items: NDArray[np.int32]
    # [S, 6], rows side by side that share items: offset of their partial states; rows; units per partial state; units
    # all of them see, or `NEVER` if the row's position decides; offset of the tails' states; rows of their sequence
    spans: NDArray[np.int32]
    positions: NDArray[np.int32]  # [R]
    span_of: NDArray[np.int32]  # [R]
    nodes: NDArray[np.int32]  # [N <= R], rows that paths compute
    paths: NDArray[np.int32]  # [L <= 17 R], -1 - slot of each path's nodes by depth
    tables: NDArray[np.int32]  # [B], blocks of every sequence in order


class Limits(NamedTuple):
    """Shapes of the arrays of `Work`, by the same names."""

    items: tuple[int, int]
    spans: tuple[int, int]
    positions: tuple[int]
    span_of: tuple[int]
    nodes: tuple[int]
    paths: tuple[int]
    tables: tuple[int]


def limits(rows: int, items: int, blocks: int) -> Limits:
    """Shapes that hold any work of at most so many rows, items and blocks (of all sequences together)."""
    return Limits((items, 8), (rows, 6), (rows,), (rows,), (rows,), (_PATH_NODES * rows,), (blocks,))


def partials(rows: int, items: int) -> int:
    """Partial states that so many rows and items keep at most."""
    # An item leaves one state for each of its nodes; the tails of a tree, of two units at most, take two for every row.
    return items * min(TILE, rows) + rows


def plan(layout: Layout, *, programs: int) -> Work:
    """Split a step so that about `programs` items run beside each other for each key head."""
    starts, contexts, causal = layout.row_starts.tolist(), layout.context_lens.tolist(), layout.causal.tolist()
    step = GROUP if 2 * _group_items(starts, contexts) >= programs else 1
    plan_ = _Plan(step)
    lengths = []
    for s, context in enumerate(contexts):
        start, stop = starts[s], starts[s + 1]
        rows = stop - start
        if rows == 0:
            continue
        blocks = -(-(context + rows) // BLOCK_SIZE)
        words = [] if causal[s] or rows == 1 else layout.ancestors[start:stop].tolist()
        if all(word & _WORD == (2 << node) - 1 for node, word in enumerate(words)):
            plan_.chain(start, rows, context, whole=2 * rows >= TILE * programs)
        else:
            plan_.tree(start, words, context, layout.block_tables[s, :blocks].tolist())
        lengths.append((s, blocks))
        plan_.table += blocks
    return plan_.work(np.concatenate([layout.block_tables[s, :blocks] for s, blocks in lengths]))


def _group_items(starts: list[int], contexts: list[int]) -> int:
    """Items, tails aside, if each were a group."""
    reach = UNIT * GROUP
    return sum(
        -(-(stop - start) // TILE) * -(-(context + stop - start) // reach)
        for context, start, stop in zip(contexts, starts, starts[1:], strict=False)
    )


class _Plan:
    """Plain lists while they grow: with some hundred numbers, what takes time is calling numpy."""

    def __init__(self, step: int) -> None:
        self.step = step  # units of an item of committed keys
        self.table = 0  # where the sequence's blocks begin
        self.states = 0  # partial states so far
        self.long: list[int] = []  # items, those of more than a unit apart: they start first
        self.short: list[int] = []
        self.spans: list[int] = []
        self.positions: list[int] = []
        self.span_of: list[int] = []
        self.nodes: list[int] = []
        self.paths: list[int] = []

    def chain(self, start: int, rows: int, context: int, whole: bool) -> None:
        """Rows that see all slots up to their own. whole: one item for everything a tile sees."""
        for first in range(0, rows, TILE):
            count = min(TILE, rows - first)
            units = (context + first + count - 1) // UNIT + 1
            step = -(-units // GROUP) * GROUP if whole else self.step
            self._span(start + first, count, units, step, NEVER, 0, 0)
        self.positions += range(context, context + rows)

    def tree(self, start: int, words: list[int], context: int, table: list[int]) -> None:
        rows, units = len(words), context // UNIT
        tails = self.states - start
        deepest = context + max(word.bit_count() if word >= 0 else (word & _WORD).bit_count() for word in words) - 1
        self.states += rows * (deepest // UNIT - units + 1)
        for first in range(0, rows, TILE):
            self._span(start + first, min(TILE, rows - first), units, self.step, units, tails, rows)
        self._tails(start, words, context, slots_of(table, context, rows), tails)

    def _span(self, row: int, rows: int, units: int, step: int, shared: int, tails: int, stride: int) -> None:
        offset = self.states - row
        self.span_of += [len(self.spans) // 6] * rows
        self.spans += (offset, rows, step, shared, tails, stride)
        items = self.long if step > 1 else self.short
        for first in range(0, units, step):
            items += (row, rows, self.table, NEVER, -1, first, min(step, units - first), offset)
            offset += rows
        self.states = offset + row

    def _tails(self, start: int, words: list[int], context: int, slots: list[int], offset: int) -> None:
        rows, inner = len(words), 0
        lines: list[list[int]] = []  # of each node, what `paths` holds of its ancestors and itself
        parents: list[int] = []
        for node, word in enumerate(words):
            above = word & _WORD ^ 1 << node
            inner |= above
            parent = above.bit_length() - 1
            parents.append(parent)
            lines.append([*lines[parent], -1 - slots[node]] if above else [-1 - slots[node]])
        depths = [len(line) - 1 for line in lines]
        self.positions += [context + depth for depth in depths]
        taken = [False] * rows
        shared = context // UNIT
        for leaf in range(rows):
            if inner >> leaf & 1:
                continue
            node, owned = leaf, []  # the deepest first
            while node >= 0 and not taken[node]:
                taken[node] = True
                owned.append(node)
                node = parents[node]
            path, at = len(self.paths), len(self.nodes)
            self.paths += lines[leaf]
            self.nodes += [start + node for node in owned]
            for first in range(0, len(owned), TILE):
                count = min(TILE, len(owned) - first)
                units = (context + depths[owned[first]]) // UNIT + 1
                for unit in range(shared, units):
                    base = offset + (unit - shared) * rows
                    self.short += (at + first, count, self.table, context, path, unit, 1, base)

    def work(self, tables: NDArray[np.int32]) -> Work:
        items = self.long + self.short
        lists = (items, self.spans, self.positions, self.span_of, self.nodes, self.paths)
        numbers = np.array([number for part in lists for number in part], np.int32)
        items_, spans, *others = np.split(numbers, np.cumsum([len(part) for part in lists[:-1]]))
        return Work(items_.reshape(-1, 8), spans.reshape(-1, 6), *others, tables)
