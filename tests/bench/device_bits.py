"""Logits of positions by plain steps against the same positions prefilled and verified in trees: every bit counts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from device_tools import NONE, Figure
from numpy.typing import NDArray

from paceline.engine.model.checkpoint import Checkpoint
from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.kernels.backend import Ops
from paceline.kernels.batch import Batch
from paceline.kernels.paging import BLOCK_SIZE, slots_of
from paceline.spec.tree import TokenTree

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Rows:
    """New rows of the sequence whose blocks are `table`, behind `context` committed ones."""

    table: list[int]
    context: int
    tree: TokenTree


class Line:
    """One line of tokens, [N], and the logits after each of them by plain steps."""

    def __init__(self, checkpoint: Checkpoint, ops: Ops, length: int, streams: int) -> None:
        c = checkpoint.config
        self._ops = ops
        self._blocks = -(-length // BLOCK_SIZE) + 5  # a tree stands in slots past the line's end
        self._decoder = Decoder(c, checkpoint.load(), ops, context_length=self._blocks * BLOCK_SIZE)
        ops.finish()
        self._cache = ops.allocate(cache_shape(c), self._blocks * max(streams, 3))
        self._pick = random.Random(5)
        self._vocab_size = c.vocab_size
        self.tokens = [self._pick.randrange(c.vocab_size) for _ in range(length)]
        self.plain = np.concatenate([self.logits([self.chain(0, at, 1)])[0] for at in range(length)])

    def table(self, stream: int) -> list[int]:
        """Blocks of one stream, out of order."""
        blocks = [*range(stream * self._blocks, (stream + 1) * self._blocks)]
        random.Random(stream).shuffle(blocks)
        return blocks

    def chain(self, stream: int, first: int, count: int) -> Rows:
        return Rows(self.table(stream), first, TokenTree.chain(tuple(self.tokens[first : first + count])))

    def tree(self, stream: int, first: int, nodes: int) -> tuple[Rows, list[int]]:
        """A tree grown at random from the token at `first`, and its nodes on the line, in order."""
        tokens, parents, line = [self.tokens[first]], [-1], [0]
        while len(tokens) < nodes:
            on = first + len(line) < len(self.tokens) and self._pick.random() < 0.5
            if on:
                line.append(len(tokens))
            parents.append(line[-2] if on else self._pick.randrange(len(tokens)))
            tokens.append(self.tokens[first + len(line) - 1] if on else self._pick.randrange(self._vocab_size))
        return Rows(self.table(stream), first, TokenTree(tuple(tokens), tuple(parents))), line

    def logits(self, rows: Sequence[Rows]) -> list[Floats]:
        """[n, V] of the nodes of each sequence, all computed in one pass."""
        starts = np.cumsum([0, *(len(each.tree) for each in rows)]).tolist()
        batch = Batch.of(
            ids=[token for each in rows for token in each.tree.tokens],
            positions=[each.context + depth for each in rows for depth in each.tree.depths],
            slots=[slot for each in rows for slot in slots_of(each.table, each.context, len(each.tree))],
            sampled=[*range(starts[-1])],
            starts=starts,
            contexts=[each.context for each in rows],
            tables=[each.table for each in rows],
            causal=[each.tree.is_chain for each in rows],
            ancestors=[
                word for each in rows for word in ([0] * len(each.tree) if each.tree.is_chain else each.tree.ancestors)
            ],
        )
        logits = np.array(self._ops.host(self._decoder.forward(batch, self._cache)[0]))
        return np.split(logits, starts[1:-1])


@dataclass(frozen=True)
class Positions:
    """contexts: where trees grow. chunk: rows of a piece of the prompt."""

    length: int
    contexts: tuple[int, ...]
    nodes: int
    chunk: int
    streams: int


def figures(checkpoint: Checkpoint, ops: Ops, where: Positions) -> Iterator[Figure]:
    """Of each way to compute the line's logits, the rows that differ from those of plain steps in any bit."""
    line = Line(checkpoint, ops, where.length, where.streams)
    found: dict[str, list[tuple[int, Floats]]] = {
        "prefilled at once": [(0, line.logits([line.chain(1, 0, where.length)])[0])],
        "prefilled in chunks": [
            (first, line.logits([line.chain(2, first, min(where.chunk, where.length - first))])[0])
            for first in range(0, where.length, where.chunk)
        ],
    }
    alone = found["in trees, alone"] = []
    for context in where.contexts:
        rows, nodes = line.tree(0, context, where.nodes)
        alone.append((context, line.logits([rows])[0][nodes]))
        line.logits([line.chain(0, context, min(where.nodes, where.length - context))])  # back to the line's own
    for stream in range(where.streams):
        line.logits([line.chain(stream, 0, where.length)])
    contexts = [where.contexts[stream % len(where.contexts)] + stream for stream in range(where.streams)]
    trees = [line.tree(stream, context, where.nodes - 3 * stream) for stream, context in enumerate(contexts)]
    found["in trees, beside others"] = [
        (context, logits[nodes])
        for context, (_, nodes), logits in zip(contexts, trees, line.logits([rows for rows, _ in trees]), strict=True)
    ]
    single = line.logits([line.chain(stream, context, 1) for stream, context in enumerate(contexts)])
    found["one row each, beside others"] = list(zip(contexts, single, strict=True))
    compared = differ = 0
    for name, pieces in found.items():
        rows_ = sum(len(logits) for _, logits in pieces)
        wrong = sum(_differing(logits, line.plain[first : first + len(logits)]) for first, logits in pieces)
        yield Figure(f"logits {name}: rows that differ", wrong, f"of {rows_}", NONE)
        compared, differ = compared + rows_, differ + wrong
    yield Figure("rows of logits that differ, all together", differ, f"of {compared}", NONE)


def _differing(one: Floats, other: Floats) -> int:
    """Rows that are not the same to the bit."""
    return int((one.view(np.uint32) != other.view(np.uint32)).any(1).sum())
