"""Runs the model: owns the weights' decoder and the cache, and nothing that decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Sequence as Seq
from typing import NamedTuple

import numpy as np

from paceline.kernels.backend import Ops
from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.sample import Draw, Logits
from paceline.kernels.settle import Pending
from paceline.kernels.tree_attention import Layout
from paceline.spec.tree import TokenTree

from .batch import build_batch
from .model.decoder import Decoder
from .page_table import Move
from .scheduler import Plan

# Keys behind which passes of a few rows and of many are prepared: attention is split among more programs behind more.
_BEHIND, _FAR = (0, 2048, 6144, 8192), (0, 8192)
_FEW = 64  # rows: steps that decode have no more, mostly
_LAP = 4  # blocks that stand for a context when a pass is timed: as many as passes without one have written


class StepOutput(NamedTuple):
    """What the pass computed, valid until the next one.

    `starts[i]` is the first logits row of plan row i; rows that sample nothing have none. `offsets[i]` is its first row
    of those that hold all nodes.
    """

    batch: Batch
    logits: Logits  # [M, V]
    hidden: Activation  # [M, H]
    starts: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    features: tuple[Activation, ...] = ()  # [R, W] each, those of the decoder


class Runner:
    """One decoder, one cache."""

    def __init__(self, decoder: Decoder, cache: Cache, ops: Ops) -> None:
        self._decoder = decoder
        self._cache = cache
        self._ops = ops

    def forward(self, plan: Plan, trees: Seq[TokenTree]) -> StepOutput:
        """One pass: prefill chunks and trees together. A device may still compute it when this returns."""
        batch = build_batch(plan, trees)
        logits, hidden, *features = self._decoder.forward(batch, self._cache)
        starts, sampled, offsets, total = [], 0, [], 0
        for row, tree in zip(plan.rows, trees, strict=True):
            starts.append(sampled)
            offsets.append(total)
            sampled += len(tree) - row.known + 1 if row.samples else 0
            total += len(tree)
        return StepOutput(batch, logits, hidden, tuple(starts), tuple(offsets), tuple(features))

    def settle(self, out: StepOutput, draws: Seq[Draw | None]) -> Pending:
        """Choose a token for each row of the pass's logits that has a draw; waits for nothing."""
        return self._ops.settle(out.logits, draws, out.batch, self._cache)

    def move(self, moves: Seq[Move]) -> None:
        """Copy accepted entries that stand off the line, all layers at once."""
        if moves:
            source, target = np.ascontiguousarray(np.array(moves, np.int64).T)
            self._ops.move_kv(self._cache, source, target)

    def warm(self, most_rows: int, most_positions: int, report: Callable[[float], None]) -> None:
        """Run a pass of each size that the backend prepares for, alone and behind keys; only before the cache is in
        use. The largest first: the others find room in the memory it took.

        most_rows: of a step. most_positions: of a sequence. report: is told the share that is done.
        """
        sizes = sorted((rows for rows in self._ops.sizes if rows <= min(most_rows, most_positions)), reverse=True)
        for done, rows in enumerate(sizes, start=1):
            most = (most_positions - rows) // BLOCK_SIZE * BLOCK_SIZE
            for context in sorted({min(context, most) for context in (_BEHIND if rows <= _FEW else _FAR)}):
                self.measure(rows, context)
                if rows > 1:
                    self.measure(rows, context, sampled=1)
            report(done / len(sizes))

    def measure(self, rows: int, context: int = 0, sampled: int | None = None) -> float:
        """Milliseconds of a pass over one chain of `rows` rows behind `context` others, of which the last `sampled` or
        all are sampled; writes to the cache's first slots.

        Only before the cache is in use. The context is a few blocks over and over, since memory that was never touched
        takes ten times as long to read.
        """
        table = np.arange(-(-(context + rows) // BLOCK_SIZE), dtype=np.int32)
        if context:
            table %= _LAP
        index, positions = np.arange(rows), np.arange(context, context + rows)
        slots = table[positions // BLOCK_SIZE] * BLOCK_SIZE + positions % BLOCK_SIZE
        wanted = index[-(sampled or rows) :]
        batch = Batch(np.zeros_like(index), positions, slots, wanted, Layout.chain(rows, table, context))
        start = time.perf_counter()
        self._decoder.forward(batch, self._cache)
        self._ops.wait()
        return (time.perf_counter() - start) * 1e3
