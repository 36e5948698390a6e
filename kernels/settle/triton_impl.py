"""Triton implementation of `settle`: the device draws the tokens and walks the trees, the host reads tokens alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from ..batch import Batch
from ..gpu.transfer import upload
from ..gpu.variant import Variant
from ..kv_cache import Cache
from ..sample import Draw
from ..sample.triton_impl import DrawTensors, draw_arrays, sample_rows
from . import Settled

_NODES = 64  # of a tree at most: its ancestors are words of 64 bits
_FEW = 16  # accepted nodes in a row are seldom more, and fewer are moved by smaller programs

Move = Callable[[Cache, torch.Tensor, torch.Tensor], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """Implements `Pending`. tokens: [M] on the host, -1 for none. ready: when they are there, None if they are now."""

    tokens: torch.Tensor
    ready: torch.cuda.Event | None
    moved: bool

    def result(self) -> Settled:
        if self.ready is not None:
            self.ready.synchronize()
        return Settled([None if token < 0 else token for token in self.tokens.tolist()], self.moved)


@triton.jit
def _walk_kernel(tokens, roots, ids, drawn, slots, ancestors, source, target, NODES: tl.constexpr, STEPS: tl.constexpr):
    """source, target [T, STEPS]: for the entry of each accepted node that stands off the line, where it is and where it
    belongs; -1 elsewhere. One program for each of T trees; the others as `_Trees` has them.
    """
    tree = tl.program_id(0)
    node, step = tl.arange(0, NODES), tl.arange(0, STEPS)
    first = tree * NODES
    node_ids = tl.load(ids + first + node)
    parents = tl.load(ancestors + first + node) ^ (tl.full((NODES,), 1, tl.int64) << node.to(tl.int64))
    root = tl.load(roots + tree)
    path = tl.full((STEPS,), -1, tl.int32)
    count = 0
    here = root
    while here < NODES:
        path = tl.where(step == count, here, path)
        count += 1
        row = tl.load(drawn + first + here)
        token = tl.load(tokens + row, mask=row >= 0, other=-1)
        is_next = (parents == tl.load(ancestors + first + here)) & (node_ids == token) & (token >= 0)
        here = tl.min(tl.where(is_next, node, NODES))
    line = root + step
    off = (path >= 0) & (path != line)
    tl.store(source + tree * STEPS + step, tl.load(slots + first + path, mask=off, other=-1))
    tl.store(target + tree * STEPS + step, tl.load(slots + first + line, mask=off, other=-1))


def _trees(batch: Batch) -> list[NDArray[Any]]:
    """Of the T sequences that branch and have sampled rows: roots [T], the first of these; and of the nodes of each
    ids, rows of the logits, slots and ancestors [T, 64], -1 behind the last node and for rows that are not sampled.
    """
    layout, rows = batch.layout, np.full(len(batch.ids), -1, np.int32)
    rows[batch.sampled] = np.arange(len(batch.sampled))
    spans = [slice(*layout.row_starts[place : place + 2]) for place in np.flatnonzero(~layout.causal)]
    spans = [span for span in spans if (rows[span] >= 0).any()]
    roots = np.array([np.argmax(rows[span] >= 0) for span in spans], np.int32)
    nodes = np.full((3, len(spans), _NODES), -1, np.int32)
    ancestors = np.full((len(spans), _NODES), -1, np.int64)
    for tree, span in enumerate(spans):
        count = span.stop - span.start
        nodes[:, tree, :count] = batch.ids[span], rows[span], batch.slots[span]
        ancestors[tree, :count] = layout.ancestors[span]
    return [roots, *nodes, ancestors]


def settle(logits: torch.Tensor, draws: Sequence[Draw | None], batch: Batch, cache: Cache, *, move: Move) -> Copied:
    """move: copies slot source[t, i] to target[t, i], [T, 16] or [T, 64] int32 on the device, -1 where nothing moves.

    Trees are walked where every row is drawn; a chain moves nothing.
    """
    device = logits.device
    if all(draw is None for draw in draws):
        # Whoever asks for rows that are drawn elsewhere waits for the pass; of a step without rows nothing is read.
        return Copied(torch.full((len(draws),), -1), _event(device) if draws else None, moved=not draws)
    drawn, walked = draw_arrays(draws), None not in draws
    trees = _trees(batch) if walked and not batch.layout.causal.all() else []
    uploaded = upload([*drawn, *trees], device)
    tokens = sample_rows(logits, DrawTensors.made_of(drawn, uploaded[: len(drawn)]))
    if device.type == "cuda":
        read = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
        read.copy_(tokens, non_blocking=True)
    else:
        read = tokens
    ready = _event(device)
    if trees and len(trees[0]):
        _walk(tokens, uploaded[len(drawn) :], batch, cache, move)
    return Copied(read, ready, moved=walked)


def _event(device: torch.device) -> torch.cuda.Event | None:
    """Passed when the device has done what it was told so far."""
    return torch.cuda.current_stream(device).record_event() if device.type == "cuda" else None


def _walk(tokens: torch.Tensor, trees: Sequence[torch.Tensor], batch: Batch, cache: Cache, move: Move) -> None:
    count = len(trees[0])
    steps = _FEW if _depth(batch) <= _FEW else _NODES
    source, target = torch.empty((2, count, steps), dtype=torch.int32, device=tokens.device)
    _walk_kernel[(count,)](tokens, *trees, source, target, NODES=_NODES, STEPS=steps, num_warps=1)
    move(cache, source, target)


def _depth(batch: Batch) -> int:
    """The most nodes that a tree has one below the other."""
    starts, causal = batch.layout.row_starts, batch.layout.causal
    lines = [batch.positions[starts[place] : starts[place + 1]] for place in np.flatnonzero(~causal)]
    return max(int(line.max() - line.min()) + 1 for line in lines)


def variants() -> list[Variant]:
    """Walks of few steps, and of as many as a tree can have nodes."""
    types = {"tokens": "*i32", "roots": "*i32", "ids": "*i32", "drawn": "*i32", "slots": "*i32", "ancestors": "*i64"}
    types |= {"source": "*i32", "target": "*i32"}
    return [
        Variant(f"walk {steps}", _walk_kernel, types, {"NODES": _NODES, "STEPS": steps}, tuple(types), num_warps=1)
        for steps in (_FEW, _NODES)
    ]
