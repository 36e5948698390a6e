"""Runs the model: owns the weights' decoder and the cache's tensors, and nothing that decides."""

from __future__ import annotations

import time
from collections.abc import Sequence as Seq
from dataclasses import dataclass

import torch

from paceline.kernels.backend import Ops
from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache import Cache
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.tree_attention import Layout
from paceline.spec.tree import TokenTree

from .batch import build_batch
from .model.decoder import Decoder
from .page_table import Move
from .scheduler import Plan


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What the pass computed. `starts[i]` is the first logits row of plan row i; rows that sample nothing have none."""

    logits: torch.Tensor  # [M, V] float32
    hidden: torch.Tensor  # [M, H]
    starts: tuple[int, ...]


class Runner:
    """One decoder, one cache, one device."""

    def __init__(self, decoder: Decoder, cache: Cache, ops: Ops, device: torch.device) -> None:
        self._decoder = decoder
        self._cache = cache
        self._ops = ops
        self._device = device

    def forward(self, plan: Plan, trees: Seq[TokenTree]) -> StepOutput:
        """One pass: prefill chunks and trees together."""
        logits, hidden = self._decoder.forward(build_batch(plan, trees, self._device), self._cache)
        starts, total = [], 0
        for row, tree in zip(plan.rows, trees, strict=True):
            starts.append(total)
            total += len(tree) - row.known + 1 if row.samples else 0
        return StepOutput(logits.float(), hidden, tuple(starts))

    def move(self, moves: Seq[Move]) -> None:
        """Copy accepted entries that stand off the line, all layers at once."""
        if moves:
            source, target = torch.tensor(moves, dtype=torch.int64, device=self._device).unbind(1)
            self._ops.move_kv(self._cache, source, target)

    def measure(self, rows: int, repeats: int = 2) -> float:
        """Milliseconds of a pass over one chain of `rows` rows without context; writes to the cache's first slots.

        Only before the cache is in use. The best of `repeats`: what disturbs a measurement only ever adds time.
        """
        blocks = torch.arange(-(-rows // BLOCK_SIZE), dtype=torch.int32)
        layout = Layout(
            row_starts=torch.tensor([0, rows], dtype=torch.int32),
            context_lens=torch.zeros(1, dtype=torch.int32),
            block_tables=blocks[None],
            causal=torch.ones(1, dtype=torch.bool),
            ancestors=torch.zeros(rows, dtype=torch.int64),
        )
        index = torch.arange(rows, device=self._device)
        batch = Batch(torch.zeros_like(index), index, index, index, layout)
        best = float("inf")
        for _ in range(repeats):
            start = time.perf_counter()
            logits, _ = self._decoder.forward(batch, self._cache)
            logits[-1].argmax().item()  # waits for the device
            best = min(best, time.perf_counter() - start)
        return best * 1e3
