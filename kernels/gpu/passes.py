"""Passes over static memory: captured as a graph for each size that occurs, replayed in one call from then on.

Eager launches cost the host more than a small pass costs the device. A graph repeats them on the memory it has seen: so
a step's arrays are copied to where the graph reads them, rows are padded to the next size, and what a padding row
computes is not looked at.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..batch import Batch
from ..kv_cache import Cache
from ..kv_cache.triton_impl import PagedCache
from ..rank.triton_impl import DeviceDraws, noise_arrays
from ..sample import Draw
from ..tree_attention.triton_impl import DeviceWork
from ..tree_attention.work import Limits, Work, limits, plan
from .staging import Staging

_log = logging.getLogger(__name__)

Results = tuple[torch.Tensor, ...]
Replay = Callable[[], None]
Capture = Callable[[Callable[[], Results]], tuple[Replay, Results]]

# Rows a pass is padded to. Products up to 64 rows read the weights once however many rows there are.
SIZES = (*(1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64), *(96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048))
_ITEMS = (16, *(64 * 2**tier for tier in range(13)))  # programs of one head in attention; surplus ones end at once
_SAMPLED = (16, *SIZES[SIZES.index(64) :])  # of a pass that samples some of its rows
_WORK = "work."
_PROGRAMS_PER_UNIT = 2  # of the device's multiprocessors: what attention is split for where there is little of it


class DeviceBatch(NamedTuple):
    """A `Batch` as the ops of this backend read it; padding rows have slot -1."""

    ids: torch.Tensor  # [R] int32
    positions: torch.Tensor  # [R] int32
    slots: torch.Tensor  # [R] int32
    sampled: torch.Tensor  # [M] int32
    layout: DeviceWork | None
    features: torch.Tensor | None  # [R, W] float32
    draws: DeviceDraws | None  # of M rows
    sources: torch.Tensor | None  # [R] int32


class _Size(NamedTuple):
    """What a graph is captured for. sampled: differs from rows unless all rows are sampled, so that the first axis of a
    result says which of both it has.
    """

    rows: int
    sampled: int
    items: int
    blocks: int
    features: int
    draws: bool
    sources: bool


def _named(work: Work | Limits) -> dict[str, Any]:
    """The fields under names that differ from those of the batch."""
    return {_WORK + name: value for name, value in zip(work._fields, work, strict=True)}


def _words(draws: Sequence[Draw]) -> NDArray[np.int32]:
    """[fields of `DeviceDraws`, M, 2], the words of 64-bit values."""
    words: NDArray[np.int32] = np.stack([values.view(np.int64) for values in noise_arrays(draws)]).view(np.int32)
    return words.reshape(len(DeviceDraws._fields), -1, 2)


def _at_least(sizes: Sequence[int], count: int) -> int:
    """The first of the sizes that is enough; the count itself where none is."""
    place = bisect_left(sizes, count)
    return sizes[place] if place < len(sizes) else count


@dataclass(slots=True)
class _Captured:
    """One size: its memory, and how to run it once it has been run before."""

    staging: Staging
    batch: DeviceBatch
    replay: Replay | None = None
    results: Results = ()


class Machine(NamedTuple):
    """Where passes run. units: multiprocessors. capture: makes one for a pass; None where none can be."""

    device: torch.device
    units: int
    capture: Callable[[], Capture] | None


class Passes:
    """Compiles functions of ops into passes. Graphs are given up for all of them where one cannot be captured."""

    def __init__(self, machine: Machine) -> None:
        self._device = machine.device
        self._programs = machine.units * _PROGRAMS_PER_UNIT
        self._new_capture = machine.capture

    def compile(self, forward: Callable[[Any, Cache], Any]) -> Callable[[Batch, Cache], Results]:
        """Results are valid until the pass is called again, for whatever size."""
        known: dict[tuple[int, _Size], tuple[Cache, _Captured]] = {}  # the cache is kept, so that its id is its own
        capture = None if self._new_capture is None else self._new_capture()

        def run(batch: Batch, cache: Cache) -> Results:
            rows, sampled = len(batch.ids), len(batch.sampled)
            if batch.features is not None and len(batch.features) != rows:
                raise ValueError("features must have one row per id")
            work = None if cache is None else plan(batch.layout, programs=self._share(cache))
            size = self._size(batch, work, cache)
            key = id(cache), size
            if key in known:
                captured = known[key][1]
            else:
                captured = self._room(size)
                if rows <= SIZES[-1]:
                    known[key] = cache, captured
            self._fill(captured, batch, work)
            results = self._run(captured, forward, cache, capture if rows <= SIZES[-1] else None)
            return tuple(result[: sampled if len(result) == size.sampled else rows] for result in results)

        return run

    def _share(self, cache: PagedCache) -> int:
        return max(self._programs // cache.k.shape[2], 1)

    def _size(self, batch: Batch, work: Work | None, cache: Cache) -> _Size:
        rows = _at_least(SIZES, len(batch.ids))
        sampled = rows
        if len(batch.sampled) != len(batch.ids):
            sampled = _at_least(_SAMPLED, len(batch.sampled))
            sampled -= sampled == rows  # not more: 65 rows are multiplied in another order than 64
        width = 0 if batch.features is None else batch.features.shape[1]
        items = blocks = 0
        if work is not None:
            items, blocks = _at_least(_ITEMS, len(work.items)), 2 * cache.k.shape[1]
            while blocks < len(work.tables):  # sequences that share a prefix name its blocks once each
                blocks *= 4
        return _Size(rows, sampled, items, blocks, width, batch.draws is not None, batch.sources is not None)

    def _room(self, size: _Size) -> _Captured:
        shapes: dict[str, Sequence[int]] = {}
        if size.draws:  # first, where 64-bit words may stand, and of an even number: kernels like 16 bytes
            shapes["draws"] = (len(DeviceDraws._fields), size.sampled + size.sampled % 2, 2)
        if size.features:
            shapes["features"] = (size.rows, size.features)
        shapes |= {
            "ids": (size.rows,),
            "positions": (size.rows,),
            "slots": (size.rows,),
            "sampled": (size.sampled,),
        }
        if size.sources:
            shapes["sources"] = (size.rows,)
        if size.blocks:
            shapes |= _named(limits(size.rows, size.items, size.blocks))
        # Padding rows are computed like others, so they need a token, a position and a row that are there.
        staging = Staging(shapes, self._device, dict.fromkeys(("draws", "features", "ids", "positions", "sampled"), 0))
        arrays = staging.on_device()
        layout = DeviceWork(*(arrays[_WORK + name] for name in DeviceWork._fields)) if size.blocks else None
        features = arrays["features"].view(torch.float32) if size.features else None
        draws = None
        if size.draws:
            words = arrays["draws"].view(torch.int64)[:, : size.sampled, 0]
            draws = DeviceDraws(words[0], words[1], words[2].view(torch.float64))
        ids, positions, slots, sampled = (arrays[name] for name in ("ids", "positions", "slots", "sampled"))
        sources = arrays.get("sources")
        return _Captured(staging, DeviceBatch(ids, positions, slots, sampled, layout, features, draws, sources))

    def _fill(self, captured: _Captured, batch: Batch, work: Work | None) -> None:
        arrays: dict[str, Any] = {} if batch.draws is None else {"draws": _words(batch.draws)}
        if batch.features is not None and captured.batch.features is not None:
            arrays["features"] = np.ascontiguousarray(batch.features, np.float32).view(np.int32)
        arrays |= {
            "ids": batch.ids,
            "positions": batch.positions,
            "slots": batch.slots,
            "sampled": batch.sampled,
        }
        if batch.sources is not None:
            arrays["sources"] = batch.sources
        if work is not None:
            arrays |= _named(work)
        captured.staging.fill(arrays)

    def _run(
        self, captured: _Captured, forward: Callable[[Any, Cache], Any], cache: Cache, capture: Capture | None
    ) -> Results:
        def launch() -> Results:
            with torch.inference_mode():
                return tuple(forward(captured.batch, cache))

        if captured.replay is not None:
            captured.replay()
            return captured.results
        results = launch()  # compiles what has not been compiled yet, which a capture could not
        if capture is not None and self._new_capture is not None:
            try:
                captured.replay, captured.results = capture(launch)
            except Exception as error:  # whatever stands in the way, the pass itself runs
                self._new_capture = None
                _log.warning(
                    "Passes run without CUDA graphs, every kernel launched by itself, which is slower: %s", error
                )
            else:
                captured.replay()
                return captured.results
        return results


def cuda_capture(device: torch.device) -> Capture:
    """Graphs of one pass share memory: only the results of the last replay are wanted."""
    pool = torch.cuda.graph_pool_handle()
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # of all: memory is shared within a stream

    def capture(launch: Callable[[], Results]) -> tuple[Replay, Results]:
        # Not by `torch.cuda.graph`, which collects garbage and empties the allocator before each of many captures.
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(device)
        with torch.cuda.stream(stream):
            # Other threads may use the device meanwhile.
            graph.capture_begin(pool=pool, capture_error_mode="thread_local")
            try:
                results = launch()
            except BaseException:
                with suppress(RuntimeError):  # the capture is broken, and that is said already
                    graph.capture_end()
                raise
            graph.capture_end()
        torch.cuda.synchronize(device)
        return graph.replay, tuple(map(_unowned, results))

    return capture


class Place:
    """What torch makes a tensor of without copying, for as long as somebody else keeps the memory."""

    def __init__(self, values: torch.Tensor) -> None:
        self.__cuda_array_interface__ = {
            "data": (values.data_ptr(), False),
            "shape": tuple(values.shape),
            "strides": tuple(stride * values.itemsize for stride in values.stride()),
            "typestr": f"<i{values.itemsize}",  # bfloat16 has no name there
            "version": 2,
        }


def _unowned(values: torch.Tensor) -> torch.Tensor:
    """The same memory, which the graph's pool keeps and the next graph that is captured there may write to as well."""
    try:
        bare = torch.as_tensor(Place(values), device=values.device).view(values.dtype)
    except (RuntimeError, TypeError, ValueError):
        return values  # a graph is worth more than the memory it holds
    return bare if bare.data_ptr() == values.data_ptr() else values
