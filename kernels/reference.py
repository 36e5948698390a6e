"""The reference backend: every op in plain torch, on the CPU or on a GPU that torch knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from .backend import Ops, Options, Pass
from .batch import Batch
from .embed.reference import embed, pack_table, tied_head
from .feed.reference import feed
from .gpu.device import free_memory
from .gpu.transfer import host
from .kv_cache import Cache
from .kv_cache.reference import allocate, block_bytes
from .linear.reference import linear, pack
from .move_kv.reference import move_kv
from .rank import Vocabulary
from .rank.reference import rank
from .rope_store.reference import rope_store
from .sample import Draw
from .sample.reference import sample
from .select.reference import select
from .settle.reference import settle
from .tree_attention import Layout
from .tree_attention.reference import prepare, tree_attention


class _TensorBatch(NamedTuple):
    """A `Batch` whose rows are on the device; the layout stays on the host, where `prepare` reads it."""

    ids: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    sampled: torch.Tensor
    layout: Layout
    features: torch.Tensor | None
    draws: Sequence[Draw] | None
    sources: torch.Tensor | None


def _compile(forward: Callable[[Any, Cache], Any], device: torch.device) -> Pass:
    """Runs the function each time, on a batch of tensors."""

    def run(batch: Batch, cache: Cache) -> tuple[torch.Tensor, ...]:
        if batch.features is not None and len(batch.features) != len(batch.ids):
            raise ValueError("features must have one row per id")
        moved = {
            name: torch.from_numpy(rows).to(device)
            for name, rows in batch._asdict().items()
            if isinstance(rows, np.ndarray)
        }
        with torch.inference_mode():
            logits, *more = forward(_TensorBatch(**{**batch._asdict(), **moved}), cache)
            return (logits.float(), *more)

    return run


def _read(logits: torch.Tensor | NDArray[np.float32]) -> NDArray[np.float32]:
    return host(logits) if isinstance(logits, torch.Tensor) else logits


def _sample(logits: torch.Tensor | NDArray[np.float32], draws: Sequence[Draw]) -> list[int]:
    return sample(_read(logits), draws)


def _rank(
    logits: torch.Tensor | NDArray[np.float32], vocabulary: Vocabulary | None, draws: Sequence[Draw], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    return rank(_read(logits), vocabulary, draws, k)


def _argmax(logits: torch.Tensor) -> list[int]:
    tokens: list[int] = logits.argmax(dim=-1).tolist()  # the first of equal values
    return tokens


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def build(options: Options) -> Ops:
    """In bfloat16 on a GPU, in float32 on the CPU."""
    device = torch.device(options.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    return Ops(
        name="reference",
        asynchronous=device.type == "cuda",
        compile=partial(_compile, device=device),
        check=lambda shape: None,  # torch runs any
        free_memory=partial(free_memory, device),
        packed_bytes=lambda matrix: matrix.shape[0] * matrix.shape[1] * dtype.itemsize,
        allocate=partial(allocate, dtype=dtype, device=device),
        block_bytes=partial(block_bytes, dtype=dtype),
        constant=lambda values: torch.from_numpy(values).to(device),
        pack=partial(pack, dtype=dtype, device=device),
        pack_table=partial(pack_table, dtype=dtype, device=device),
        tied_head=tied_head,
        embed=embed,
        feed=partial(feed, dtype=dtype),
        select=select,
        linear=linear,
        rope_store=rope_store,
        prepare=partial(prepare, device=device),
        tree_attention=tree_attention,
        move_kv=move_kv,
        sample=_sample,
        rank=_rank,
        settle=partial(settle, argmax=_argmax),
        guessing=None,
        host=host,
        sizes=(),
        wait=partial(_wait, device),
        finish=lambda: None,
    )
