"""A drafter's model that only reads: it knows what comes next if, and only if, its cache holds the line before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paceline.kernels.backend import load
from paceline.kernels.batch import Batch
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.sample.reference import gumbel

VOCAB = 50
REACH = 4  # how many tokens decide the next one


def logits_after(line: tuple[int, ...]) -> NDArray[np.float32]:
    """[V] of the text's next token: decided by the last tokens, and flat enough that noise matters."""
    return np.random.default_rng(abs(hash(line[-REACH:]))).normal(size=VOCAB).astype(np.float32)


def next_token(line: tuple[int, ...], position: int, seed: int = 0, temperature: float = 0.0) -> int:
    logits = logits_after(line)
    if temperature:
        logits = logits / np.float32(temperature) + gumbel(np.arange(VOCAB), position, seed)
    return int(logits.argmax())


class LineModel:
    """Keeps (position, token) of each slot. Raises AssertionError for a row whose keys are not its line.

    behind: as the drafter's; where it is 1, a row's feature must be [its position], and so is what it makes of it.
    """

    vocabulary = None

    def __init__(self, behind: int) -> None:
        self._behind = behind
        self.compile = load().compile
        self._slots: dict[int, tuple[int, int]] = {}
        self.rows = 0

    def forward(self, batch: Batch, cache: Any) -> tuple[torch.Tensor, torch.Tensor]:
        results = self.body(batch, cache)
        if self._behind:
            assert batch.features is not None
            assert batch.features[:, 0].tolist() == batch.positions.tolist()
        return results

    def body(self, batch: Any, cache: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows may wait for their tokens and features: what follows a wrong feature is arbitrary."""
        self.rows += len(batch.ids)
        layout = batch.layout
        positions, sampled = np.asarray(batch.positions), np.asarray(batch.sampled)
        lines: list[tuple[int, ...]] = []
        for s, context in enumerate(layout.context_lens.tolist()):
            begin, end = layout.row_starts[s : s + 2].tolist()
            table, origin = layout.block_tables[s], int(positions[begin]) - context
            slots = [int(table[i // BLOCK_SIZE]) * BLOCK_SIZE + i % BLOCK_SIZE for i in range(context + end - begin)]
            assert batch.slots[begin:end].tolist() == slots[context:]
            for row in range(begin, end):
                self._slots[slots[context + row - begin]] = int(positions[row]), int(batch.ids[row])
            for row in range(begin, end):
                word = int(layout.ancestors[row]) & (1 << 64) - 1
                own = [i for i in range(row - begin + 1) if layout.causal[s] or word >> i & 1]
                entries = [self._slots[slots[i]] for i in (*range(context), *(context + i for i in own))]
                assert [position for position, _ in entries] == list(range(origin, int(positions[row]) + 1))
                fed = not self._behind or batch.features[row, 0] == positions[row]
                lines.append(tuple(token for _, token in entries) if fed else ())
        logits = torch.from_numpy(np.stack([logits_after(lines[row]) for row in sampled]))
        return logits, torch.from_numpy((positions[sampled] + 1)[:, None].astype(np.float32))
