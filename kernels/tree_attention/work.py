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

    An item leaves one partial state for each of its nodes, at the item's own place.
    """

    # [I, 8]: first row, or where `nodes` begins for a path; nodes; where `tables` begins; position from which on slots
    # come from `paths`; where `paths` begins, -1 if nowhere; first unit; units; the item
    items: NDArray[np.int32]
    # [S <= R, 4], rows side by side that share items: the first item; the first row; units per item; units all of them
    # see, or `NEVER` if each row's position decides
    spans: NDArray[np.int32]
    positions: NDArray[np.int32]  # [R]
    span_of: NDArray[np.int32]  # [R]
    tails: NDArray[np.int32]  # [R], where the units follow that a span does not share: item * TILE + node in it, or -1
    nodes: NDArray[np.int32]  # [N <= R], rows that paths compute
    paths: NDArray[np.int32]  # [L <= 17 R], ~slot of each path's nodes by depth
    tables: NDArray[np.int32]  # [B], blocks of every sequence in order


class Limits(NamedTuple):
    """Shapes of the arrays of `Work`, by the same names."""

    items: tuple[int, int]
    spans: tuple[int, int]
    positions: tuple[int]
    span_of: tuple[int]
    tails: tuple[int]
    nodes: tuple[int]
    paths: tuple[int]
    tables: tuple[int]


def limits(rows: int, items: int, blocks: int) -> Limits:
    """Shapes that hold any work of at most so many rows, items and blocks (of all sequences together)."""
    return Limits((items, 8), (rows, 4), (rows,), (rows,), (rows,), (rows,), (_PATH_NODES * rows,), (blocks,))


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
        self.items: list[int] = []  # of committed keys
        self.tail_items: list[int] = []
        self.spans: list[int] = []
        self.positions: list[int] = []
        self.span_of: list[int] = []
        self.tails: list[int] = []  # as in `Work`, counted from the first tail
        self.nodes: list[int] = []
        self.paths: list[int] = []

    def chain(self, start: int, rows: int, context: int, whole: bool) -> None:
        """Rows that see all slots up to their own. whole: one item for everything a tile sees."""
        for first in range(0, rows, TILE):
            count = min(TILE, rows - first)
            units = (context + first + count - 1) // UNIT + 1
            self._span(start + first, count, units, -(-units // GROUP) * GROUP if whole else self.step, NEVER)
        self.positions += range(context, context + rows)
        self.tails += [-1] * rows

    def tree(self, start: int, words: list[int], context: int, table: list[int]) -> None:
        rows, units = len(words), context // UNIT
        for first in range(0, rows, TILE):
            self._span(start + first, min(TILE, rows - first), units, self.step, units)
        self._tails(start, words, context, slots_of(table, context, rows))

    def _span(self, row: int, rows: int, units: int, step: int, shared: int) -> None:
        self.span_of += [len(self.spans) // 4] * rows
        self.spans += (len(self.items) // 8, row, step, shared)
        for first in range(0, units, step):
            self.items += (row, rows, self.table, NEVER, -1, first, min(step, units - first), -1)

    def _tails(self, start: int, words: list[int], context: int, slots: list[int]) -> None:
        inner = 0
        parents: list[int] = []
        depths: list[int] = []
        lines: list[list[int]] = []  # of each node, what `paths` holds of its ancestors and itself
        for node, word in enumerate(words):
            above = word & _WORD ^ 1 << node
            inner |= above
            if above:
                parent = above.bit_length() - 1
                lines.append([*lines[parent], ~slots[node]])
                depths.append(depths[parent] + 1)
            else:
                parent = -1
                lines.append([~slots[node]])
                depths.append(0)
            parents.append(parent)
        self.positions += [context + depth for depth in depths]
        tails = [-1] * len(words)
        items, nodes, paths, unit = self.tail_items, self.nodes, self.paths, context // UNIT
        for leaf, line in enumerate(lines):
            if inner >> leaf & 1:
                continue
            node, path = leaf, len(paths)
            paths += line
            while node >= 0 and tails[node] < 0:
                # A tile of nodes on the way to the root, the deepest first
                place, at, deepest = len(items) // 8 * TILE, len(nodes), context + depths[node]
                lane = 0
                while node >= 0 and tails[node] < 0 and lane < TILE:
                    tails[node] = place + lane
                    nodes.append(start + node)
                    node = parents[node]
                    lane += 1
                for u in range(unit, deepest // UNIT + 1):
                    items += (at, lane, self.table, context, path, u, 1, -1)
        self.tails += tails

    def work(self, tables: NDArray[np.int32]) -> Work:
        """Items of committed keys first: those are the long ones."""
        shift = len(self.items) // 8 * TILE
        lists = (
            self.items + self.tail_items,
            self.spans,
            self.positions,
            self.span_of,
            [shift + tail if tail >= 0 else -1 for tail in self.tails],
            self.nodes,
            self.paths,
        )
        numbers = np.array([number for part in lists for number in part], np.int32)
        arrays, begin = [], 0
        for part in lists:
            arrays.append(numbers[begin : begin + len(part)])
            begin += len(part)
        items, spans, positions, span_of, tails, nodes, paths = arrays
        items = items.reshape(-1, 8)
        items[:, 7] = np.arange(len(items))
        return Work(items, spans.reshape(-1, 4), positions, span_of, tails, nodes, paths, tables)
