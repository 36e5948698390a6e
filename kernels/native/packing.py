"""Weights in the native layout: repacked without loss from what a checkpoint stores, or rounded on request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import bfloat16
from ..backend import WEIGHTS
from ..linear import Floats, Matrix, Stored, float_pieces
from .store import MemoryStore, Store

# GGUF kind -> (native format, native source) with exactly the same values.
_LOSSLESS = {
    "Q4_0": ("q4", "q4_0"),
    "Q4_1": ("q4", "q4_1"),
    "Q8_0": ("q8", "q8_0"),
    "F32": ("f32", "f32"),
    "F16": ("f16", "f16"),
    "BF16": ("bf16", "bf16"),
}
STORED = "stored"
_PIECE = 4096  # rows converted at once


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A weight the native module reads; `width` columns come out of `linear`. The handle keeps its memory alive."""

    handle: Any
    inputs: int
    width: int


class Packer:
    """Packs matrices into `store`. weights: one of `backend.WEIGHTS`; "stored" keeps every value as it is.

    A weight of a form of its own stays in memory: a store holds one model, whose names a drafter's tensors may share.
    """

    def __init__(self, module: ModuleType, store: Store, weights: str = STORED) -> None:
        self._module = module
        self._store = store
        self._weights = weights
        self._memory = MemoryStore()

    def pack(
        self, matrix: Matrix, bias: Floats | None = None, *, gate: bool = False, form: str | None = None
    ) -> PackedWeight:
        """gate: each block holds gates in one half and what they gate in the other; such a weight has no bias."""
        if gate and bias is not None:
            raise ValueError("a gated weight has no bias in the native kernels")
        if form is not None and (form not in WEIGHTS or form == STORED):
            raise ValueError(f"a weight has no form {form!r}; choose one of {', '.join(WEIGHTS[1:])}")
        outputs, inputs = matrix.shape
        name = form or self._format(matrix)
        fmt = getattr(self._module.Format, name)
        # Both parts of a gated weight fill whole halves; what is added to them is zero and never read.
        lanes = self._module.LANES
        packed_outputs = 2 * (-(-outputs // 2 // lanes) * lanes) if gate else outputs
        key = "|".join((name, "gate" if gate else "plain", *(part.name for part in matrix.parts)))

        def fill(out: NDArray[np.uint8]) -> None:
            self._fill(matrix, name, gate, out)

        store = self._memory if form else self._store
        data = store.array(key, self._module.packed_bytes(fmt, packed_outputs, inputs), fill)
        handle = self._module.Weight(fmt, packed_outputs, inputs, data, bias)
        return PackedWeight(handle, inputs, outputs // 2 if gate else outputs)

    def _format(self, matrix: Matrix) -> str:
        if self._weights != STORED:
            return self._weights
        kinds = {part.kind for part in matrix.parts}
        if len(kinds) == 1 and (kind := kinds.pop()) in _LOSSLESS:
            return _LOSSLESS[kind][0]
        return "f32"  # parts stored differently share only their values

    def _fill(self, matrix: Matrix, name: str, gate: bool, out: NDArray[np.uint8]) -> None:
        outputs, inputs = matrix.shape
        half, names = outputs // 2, self._module.Part
        parts = [(0, half, names.gates), (half, outputs, names.gated)] if gate else [(0, outputs, names.whole)]
        row = 0
        for source, rows in _pieces(matrix, name):
            # A piece may cross from the gates into what they gate.
            for begin, end, part in parts:
                first, last = max(row, begin), min(row + len(rows), end)
                if first < last:
                    self._module.pack(
                        getattr(self._module.Format, name),
                        getattr(self._module.Source, source),
                        np.ascontiguousarray(rows[first - row : last - row]),
                        inputs,
                        first - begin,
                        part,
                        out,
                    )
            row += len(rows)


def _pieces(matrix: Matrix, name: str) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """(source format, rows) of the matrix from top to bottom: as stored where that packs, else as floats."""
    if all(_LOSSLESS.get(part.kind, ("", ""))[0] == name for part in matrix.parts):
        for part in matrix.parts:
            yield from _stored_pieces(part)
        return
    for rows in float_pieces(matrix, _PIECE):
        yield name if name in ("bf16", "f16") else "f32", _narrow(rows, name).view(np.uint8)


def _narrow(rows: Floats, name: str) -> NDArray[Any]:
    """In 16 bits where the format has them, to the nearest, ties to even; what is too large becomes infinity."""
    if name == "bf16":
        return bfloat16.narrow(rows)
    if name == "f16":
        with np.errstate(over="ignore"):
            return rows.astype(np.float16)
    return rows


def _stored_pieces(part: Stored) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    raw = part.raw()
    for start in range(0, len(raw), _PIECE):
        yield _LOSSLESS[part.kind][1], raw[start : start + _PIECE]
