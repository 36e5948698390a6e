"""What the kernel benchmark reads off the machine and off a recorded pass: bandwidth, time per op, bytes per op."""

from __future__ import annotations

import ctypes
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from paceline.engine.backends import choose_ops
from paceline.engine.config import EngineConfig
from paceline.engine.model.checkpoint import Checkpoint
from paceline.engine.model.decoder import Decoder, cache_shape
from paceline.kernels.batch import Batch
from paceline.kernels.native.recorder import Replay, arrays
from paceline.kernels.paging import BLOCK_SIZE
from paceline.kernels.tree_attention import Layout

LAYER = ("qkv", "rope_store", "attention", "out", "gate_up", "down")
_MATRICES = ("qkv", "out", "gate_up", "down", "head")
Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

_BUFFER_BYTES = 1 << 30  # far beyond any last-level cache
_EMPTY_RUNS = 8


def read_bandwidth(threads: int, *, size: int = _BUFFER_BYTES, repeats: int = 8) -> dict[str, float]:
    """Bytes per second that `threads` threads read from memory, by two readers; the best of `repeats` each.

    memchr: the C library's search for a byte that is not there, one share of the buffer per thread: loads and compares
    only. sum: torch's sum of float32, in its own threads. What disturbs a measurement only ever adds time, so the
    highest figure is the machine's.
    """
    buffer = np.ones(size, np.uint8)
    share = size // threads
    memchr = ctypes.CDLL(None).memchr
    memchr.argtypes, memchr.restype = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t), ctypes.c_void_p
    floats = torch.from_numpy(buffer).view(torch.float32)
    kept = torch.get_num_threads()
    torch.set_num_threads(threads)
    with ThreadPoolExecutor(threads) as pool:  # a call through ctypes lets go of the interpreter's lock

        def search() -> None:
            starts = (buffer.ctypes.data + share * thread for thread in range(threads))
            if any(pool.map(lambda start: memchr(start, 0, share), starts)):
                raise AssertionError("a byte was found that is not there")

        figures = {"memchr": share * threads / _best(search, repeats), "sum": size / _best(floats.sum, repeats)}
    torch.set_num_threads(kept)
    return figures


def _best(work: Callable[[], Any], repeats: int) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def op_names(layers: int) -> list[str]:
    """The kinds of a recorded pass's ops, in order."""
    return ["embed", *LAYER * layers, "select", "head"]


def random_ids(rows: int, context: int, vocab_size: int) -> Ids:
    """[rows] token ids, always the same for the same arguments."""
    return np.random.default_rng(context).integers(vocab_size, size=rows)


def chain_batch(ids: Ids, context: int, *, sampled: int) -> Batch:
    """One sequence: `ids` after `context` cached tokens, in blocks 0, 1, and on; the last `sampled` are sampled."""
    rows = len(ids)
    places = np.arange(context, context + rows)
    layout = Layout(
        row_starts=np.array([0, rows], np.int32),
        context_lens=np.array([context], np.int32),
        block_tables=np.arange(-(-(context + rows) // BLOCK_SIZE), dtype=np.int32)[None],
        causal=np.ones(1, np.bool_),
        ancestors=np.zeros(rows, np.int64),
    )
    return Batch(ids, places, places, np.arange(rows - sampled, rows), layout)


def replays() -> list[Replay]:
    """The recorded passes that are alive in this process."""
    return [each for each in gc.get_objects() if type(each) is Replay]  # isinstance would wake lazy objects


@dataclass(frozen=True, slots=True)
class NativePass:
    """The native backend's pass of a model, op by op."""

    program: Any
    names: Sequence[str]
    weight_bytes: Mapping[str, int]  # by kind of op, all layers together
    slot_bytes: int  # keys and values of one token, all layers together
    forward: Callable[[Batch], tuple[Floats, Floats]]
    sample: Callable[[Floats, Any], list[int]]
    vocab_size: int

    @classmethod
    def build(cls, checkpoint: Checkpoint, config: EngineConfig, *, slots: int, cache: Path) -> NativePass:
        """Loads the weights and records a pass over a cache of `slots` slots. Raises ConfigError without a compiler."""
        model, shape = checkpoint.config, cache_shape(checkpoint.config)
        ops = choose_ops(replace(config, backend="native"), checkpoint, "cpu", cache)
        sizes: dict[int, int] = {}  # bytes of a packed weight, by its identity
        order: list[int] = []  # bytes of the weight each linear reads, as they are recorded
        packer: Any = ops.pack.__self__  # type: ignore[attr-defined]

        def pack(matrix: Any, *arguments: Any, **options: Any) -> Any:
            weight = packer.pack(matrix, *arguments, **options)
            kind = getattr(packer._module.Format, packer._format(matrix))
            sizes[id(weight)] = packer._module.packed_bytes(kind, weight.handle.outputs, weight.handle.inputs)
            return weight

        def linear(x: Any, weight: Any, **options: Any) -> Any:
            order.append(sizes[id(weight)])
            return ops.linear(x, weight, **options)

        tapped = replace(ops, pack=pack, pack_table=pack, linear=linear)
        decoder = Decoder(model, checkpoint.load(), tapped, context_length=slots)
        ops.finish()
        kv = ops.allocate(shape, -(-slots // BLOCK_SIZE))
        known = {id(each) for each in replays()}
        decoder.forward(chain_batch(np.zeros(1, np.int64), 0, sampled=1), kv)
        (replay,) = (each for each in replays() if id(each) not in known)
        names = op_names(model.num_layers)
        if len(replay.program) != len(names):
            raise SystemExit(
                f"The pass has {len(replay.program)} ops where {len(names)} were expected: name them anew."
            )
        return cls(
            program=replay.program,
            names=names,
            weight_bytes=sum_by_kind([name for name in names if name in _MATRICES], order),
            slot_bytes=ops.block_bytes(shape) // BLOCK_SIZE,
            forward=lambda batch: decoder.forward(batch, kv),
            sample=ops.sample,
            vocab_size=model.vocab_size,
        )

    def fill(self, tokens: int, chunk: int = 512) -> None:
        """Compute `tokens` cached tokens: memory that was never written is read much faster than memory is."""
        for start in range(0, tokens, chunk):
            self.forward(self.batch(min(chunk, tokens - start), start, sampled=1))

    def batch(self, rows: int, context: int, *, sampled: int) -> Batch:
        """`rows` random tokens after `context` cached ones."""
        return chain_batch(random_ids(rows, context, self.vocab_size), context, sampled=sampled)

    def whole_ms(self, batch: Batch) -> float:
        """Milliseconds of one pass, as the native code counts them."""
        return float(self.program.run(arrays(batch), 0, len(self.names), 1)) * 1e3

    def op_ms(self, batch: Batch) -> dict[str, float]:
        """Milliseconds by kind of op, all layers together.

        Ops run one by one in the order of the pass, so each finds its weights as far from the core as in a pass. What
        it costs to call the threads together, which a pass does once and not per op, is taken off.
        """
        inputs = arrays(batch)
        idle = min(self.program.run(inputs, 0, 0, _EMPTY_RUNS) for _ in range(_EMPTY_RUNS))
        spent = [self.program.run(inputs, op, op + 1, 1) - idle for op in range(len(self.names))]
        return {name: seconds * 1e3 for name, seconds in sum_by_kind(self.names, spent).items()}


def sum_by_kind(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Add up the values that belong to the same name, in the order names first occur."""
    sums: dict[str, Any] = {}
    for name, value in zip(names, values, strict=True):
        sums[name] = sums.get(name, 0) + value
    return sums
