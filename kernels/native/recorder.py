"""Records what a pass calls, once, and replays it in one call per step: the CPU's answer to a captured graph.

While recording, ops return handles instead of arrays; arguments that differ from step to step (ids, positions, slots,
features) are not looked at, since every replay takes them from its batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from numpy.typing import NDArray

from ..batch import Batch
from ..linear import Floats, Indices, Norm
from ..rope_store import Rotation
from .packing import PackedWeight

Forward = Callable[[Batch, Any], Any]
# Activations are rounded to 8 bits by groups of 32; values above this many times the root mean square of their row
# stay floats. 0: every group is rounded to 16 bits.
OUTLIER = {"mixed": 5.0, "int8": float("inf"), "int16": 0.0}


class Value:
    """An activation of the pass being recorded, [rows, width] in one of the program's buffers.

    When nothing holds the handle any more, nothing recorded later reads the value, and its buffer is used again.
    """

    def __init__(self, recording: _Recording, buffer: int, width: int, sampled: bool) -> None:
        self._recording = recording
        self._buffer: int | None = buffer
        self.width = width
        self.sampled = sampled  # rows are those whose next token is wanted

    @property
    def buffer(self) -> int:
        """Raises RuntimeError where another value took the place of this one."""
        if self._buffer is None:
            raise RuntimeError(
                "this value is gone: residuals are added and heads are rotated in place; select its rows before, or "
                "use the result"
            )
        return self._buffer

    def replaced(self) -> Value:
        """A handle of what is computed in this value's place. Reading this one is an error from now on."""
        successor = Value(self._recording, self.buffer, self.width, self.sampled)
        self._buffer = None
        return successor

    def __del__(self) -> None:
        if self._buffer is not None:
            self._recording.spare.setdefault((self.width, self.sampled), []).append(self._buffer)


@dataclass(slots=True)
class _Recording:
    """One program under construction."""

    program: Any
    spare: dict[tuple[int, bool], list[int]] = field(default_factory=dict)  # buffers by width and kind of rows

    def value(self, width: int, *, sampled: bool = False) -> Value:
        free = self.spare.get((width, sampled))
        return Value(self, free.pop() if free else self.program.value(width, sampled), width, sampled)


def _norm(norm: Norm | None) -> tuple[Floats | None, float]:
    return (None, 0.0) if norm is None else (norm.weight, norm.eps)


class Recorder:
    """The ops of a pass as the native backend has them: each call appends to the program being recorded."""

    def __init__(self, module: ModuleType, pool: Any, activations: str = "mixed") -> None:
        self._module = module
        self._pool = pool
        self._outlier = OUTLIER[activations]
        self._recording: _Recording | None = None
        self._rotations: dict[int, tuple[Rotation, Any]] = {}

    @property
    def _now(self) -> _Recording:
        if self._recording is None:
            raise RuntimeError("native ops are recorded: call them inside a function given to `compile`")
        return self._recording

    def compile(self, forward: Forward) -> Callable[[Batch, Any], tuple[Floats, ...]]:
        """Record `forward` at its first call, for the cache it is called with; replay it from then on."""
        recorded: dict[int, tuple[Any, Replay]] = {}  # the cache beside it: while it is kept, its id is its own

        def run(batch: Batch, cache: Any) -> tuple[Floats, ...]:
            known = recorded.get(id(cache))
            if known is None:
                known = recorded[id(cache)] = cache, self._record(forward, batch, cache)
            return known[1](batch)

        return run

    def _record(self, forward: Forward, batch: Batch, cache: Any) -> Replay:
        self._recording = _Recording(self._module.Program(self._pool, self._outlier))
        try:
            return Replay(self._recording.program, forward(batch, cache))
        finally:
            self._recording = None

    def embed(self, table: PackedWeight, ids: Indices) -> Value:
        out = self._now.value(table.inputs)
        self._now.program.embed(table.handle, out.buffer)
        return out

    def feed(self, features: Floats | None) -> Value:
        """Every replay takes the features of its own batch; of those recorded with only the width counts."""
        if features is None:
            raise ValueError("this pass reads features and the batch has none")
        if features.ndim != 2:
            raise ValueError("features must have 2 dimensions")
        out = self._now.value(features.shape[1])
        self._now.program.feed(out.buffer)
        return out

    def select(self, x: Value, rows: Indices) -> Value:
        out = self._now.value(x.width, sampled=True)
        self._now.program.select(x.buffer, out.buffer)
        return out

    def linear(
        self,
        x: Value,
        weight: PackedWeight,
        *,
        norm: Norm | None = None,
        residual: Value | None = None,
        gate: bool = False,
        silu: bool = False,
        wide: bool = False,  # every activation is float32
    ) -> Value:
        if gate and silu:
            raise ValueError("a gated result has no silu of its own")
        recording = self._now
        source, added = x.buffer, -1 if residual is None else residual.buffer
        # A residual is added in place: a thread reads only those of its elements that it writes. Of x it reads all.
        in_place = residual if residual is not x else None
        out = in_place.replaced() if in_place else recording.value(weight.width, sampled=x.sampled)
        scale, eps = _norm(norm)
        recording.program.linear(source, weight.handle, scale, eps, added, gate, silu, out.buffer)
        return out

    def rope_store(
        self,
        qkv: Value,
        rotation: Rotation,
        positions: Indices,
        slots: Indices,
        cache: Any,
        layer: int,
        *,
        q_norm: Norm | None = None,
        k_norm: Norm | None = None,
    ) -> Value:
        """The queries stay where the projection put them, rotated and scaled in place."""
        q_scale, q_eps = _norm(q_norm)
        k_scale, k_eps = _norm(k_norm)
        self._now.program.rope_store(
            qkv.buffer, cache.handle, layer, self._rotation(rotation), q_scale, q_eps, k_scale, k_eps
        )
        return qkv.replaced()

    def _rotation(self, rotation: Rotation) -> Any:
        """One table for all layers; the original is kept so that its id stays its own."""
        if id(rotation) not in self._rotations:
            native = self._module.Rotation(rotation.cos.reshape(-1), rotation.sin.reshape(-1), rotation.cos.shape[0])
            self._rotations[id(rotation)] = (rotation, native)
        return self._rotations[id(rotation)][1]

    def tree_attention(self, q: Value, cache: Any, layer: int, prepared: None) -> Value:
        heads = q.width // cache.head_dim - 2 * cache.kv_heads
        out = self._now.value(heads * cache.head_dim)
        self._now.program.attention(q.buffer, cache.handle, layer, out.buffer)
        return out


class Replay:
    """A recorded program and where its results are."""

    def __init__(self, program: Any, results: Sequence[Value]) -> None:
        self.program = program
        self._size = len(program)
        self._results = [(value.buffer, value.sampled) for value in results]

    def __call__(self, batch: Batch) -> tuple[Floats, ...]:
        """Each result with all rows or the sampled ones, valid until the next call.

        Raises ValueError for rows that lie outside, or for features that are missing or of another width.
        """
        program = self.program
        program.run(arrays(batch), 0, self._size, 1)
        sampled, rows = len(batch.sampled), len(batch.ids)
        return tuple([program.view(buffer, sampled if few else rows) for buffer, few in self._results])


def arrays(batch: Batch) -> tuple[NDArray[Any] | None, ...]:
    """The batch as the native module takes it."""
    ids, positions, slots, sampled, layout, features, *_ = batch
    return (ids, positions, slots, sampled, *layout, features)
