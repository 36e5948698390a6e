"""The native backend's table of ops."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backend import BackendError, Ops, Options, check_formats
from ..kv_cache import CacheShape
from ..linear import Matrix
from ..paging import BLOCK_SIZE
from ..rank import Vocabulary
from ..sample import Draw
from ..settle.reference import settle
from . import isa
from .packing import PackedWeight, Packer
from .recorder import Recorder
from .store import FileStore, MemoryStore, Store


def physical_cores() -> int:
    """Cores this process may run on, hyper-threads of one core counted once."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    groups = set()
    for cpu in allowed:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        groups.add(siblings.read_text().strip() if siblings.exists() else str(cpu))
    return len(groups)


@dataclass(frozen=True, slots=True)
class NativeCache:
    handle: Any
    kv_heads: int
    head_dim: int


# Bytes of a channel, and of the scale beside those of one position of one head.
_CACHED = {"f16": (2, 0), "int8": (1, 4)}


class _Memory:
    """Allocation and copying of caches."""

    def __init__(self, module: ModuleType, kv: str) -> None:
        self._module = module
        self._format = getattr(module.KvFormat, kv)
        self._element, self._scale = _CACHED[kv]

    def check(self, shape: CacheShape) -> None:
        lanes = self._module.LANES
        if shape.head_dim % lanes:
            raise BackendError(
                f"The native kernels need a head size that is a multiple of {lanes}, this model's is "
                f"{shape.head_dim}; use --backend reference."
            )

    def allocate(self, shape: CacheShape, blocks: int) -> NativeCache:
        handle = self._module.Cache(self._format, shape.layers, blocks, shape.kv_heads, shape.head_dim)
        return NativeCache(handle, shape.kv_heads, shape.head_dim)

    def block_bytes(self, shape: CacheShape) -> int:
        slot = shape.head_dim * self._element + self._scale
        return 2 * shape.layers * shape.kv_heads * BLOCK_SIZE * slot

    @staticmethod
    def move_kv(cache: NativeCache, source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
        cache.handle.move(source, target)


def build(options: Options) -> Ops:
    """Raises BackendError where no native module can run, or for an unknown format."""
    check_formats(options)
    kv = "f16" if options.kv == "auto" else options.kv
    if kv not in _CACHED:
        raise BackendError(
            f"The native kernels cache keys and values as {' or '.join(_CACHED)}, not as {kv}; choose one of these."
        )
    try:
        module = isa.load()
    except isa.NativeUnavailableError as error:
        raise BackendError(str(error)) from error
    if module.PAGE != BLOCK_SIZE:
        raise BackendError(f"The native kernels have pages of {module.PAGE} slots, not {BLOCK_SIZE}; install again.")
    recorder = Recorder(module, module.Pool(options.threads or physical_cores()), options.activations)
    fingerprint = f"{options.weights} {options.fingerprint}"
    store: Store = MemoryStore() if options.store is None else FileStore(options.store, fingerprint)
    packer = Packer(module, store, options.weights)
    memory = _Memory(module, kv)

    def sample(logits: NDArray[np.float32], draws: Sequence[Draw]) -> list[int]:
        chosen: list[int] = module.sample(logits, draws)
        return chosen

    def rank(
        logits: NDArray[np.float32], vocabulary: Vocabulary | None, draws: Sequence[Draw], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        ranked: tuple[NDArray[np.int64], NDArray[np.float32]] = module.rank(logits, vocabulary, draws, k)
        return ranked

    def argmax(logits: NDArray[np.float32]) -> list[int]:
        tokens: list[int] = logits.argmax(axis=1).tolist()  # the first of equal values
        return tokens

    def pack_table(matrix: Matrix, *, form: str | None = None) -> PackedWeight:
        return packer.pack(matrix, form=form)

    return Ops(
        name="native",
        asynchronous=False,
        compile=recorder.compile,
        check=memory.check,
        free_memory=lambda: None,
        packed_bytes=lambda matrix: 0,
        allocate=memory.allocate,
        block_bytes=memory.block_bytes,
        constant=lambda values: values,
        pack=packer.pack,
        pack_table=pack_table,
        tied_head=lambda table: table,
        embed=recorder.embed,
        feed=recorder.feed,
        select=recorder.select,
        linear=recorder.linear,
        rope_store=recorder.rope_store,
        prepare=lambda layout: None,  # every replay cuts its own tasks
        tree_attention=recorder.tree_attention,
        move_kv=memory.move_kv,
        sample=sample,
        rank=rank,
        settle=partial(settle, argmax=argmax),
        guessing=None,
        host=lambda logits: logits,
        sizes=(),
        wait=lambda: None,  # a pass returns when it is done
        finish=store.finish,
    )
