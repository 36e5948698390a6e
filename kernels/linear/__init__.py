"""`linear`: rows times a packed weight, with what surrounds it in a decoder fused in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import bfloat16

Floats = NDArray[np.float32]

_PIECE = 4096  # rows read at once


class Stored(Protocol):
    """One tensor as a checkpoint holds it: rows of a matrix, perhaps quantised."""

    @property
    def name(self) -> str:
        """What the checkpoint calls it."""
        ...

    @property
    def kind(self) -> str:
        """Name of the element type, as GGUF spells it: F32, F16, BF16, Q8_0, Q4_0, Q4_1."""
        ...

    @property
    def shape(self) -> tuple[int, int]: ...

    def raw(self) -> NDArray[np.uint8]:
        """[rows, bytes per row], in the row order the decoder wants."""
        ...

    def read(self, first: int, out: Floats) -> None:
        """Rows first … first + R - 1 as floats, into `out` [R, K], C-contiguous."""
        ...


class Matrix(Protocol):
    """A weight [N, K] that is not packed yet: tensors stacked by rows."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def parts(self) -> Sequence[Stored]: ...


def float_pieces(matrix: Matrix, rows: int) -> Iterator[Floats]:
    """The matrix from top to bottom, at most `rows` rows at once; a piece is valid until the next one is asked for."""
    scratch = np.empty((min(rows, matrix.shape[0]), matrix.shape[1]), np.float32)
    for part in matrix.parts:
        for first in range(0, part.shape[0], rows):
            piece = scratch[: part.shape[0] - first]
            part.read(first, piece)
            yield piece


def float_rows(matrix: Matrix, ids: NDArray[np.int64] | None = None) -> Floats:
    """Rows `ids`, ascending, of the matrix, or all of them, in an array of their own."""
    wanted = np.arange(matrix.shape[0]) if ids is None else ids
    rows = np.empty((len(wanted), matrix.shape[1]), np.float32)
    first = 0
    for piece in float_pieces(matrix, _PIECE):
        begin, end = np.searchsorted(wanted, (first, first + len(piece)))
        rows[begin:end] = piece[wanted[begin:end] - first]
        first += len(piece)
    return rows


@dataclass(frozen=True, slots=True)
class ArrayMatrix:
    """A matrix in memory. Implements `Matrix` and, as its only part, `Stored`.

    values: [N, K] float32 or float16; uint16 stands for bfloat16 by its bits.
    """

    values: NDArray[Any]
    name: str = "array"

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]

    @property
    def parts(self) -> tuple[ArrayMatrix]:
        return (self,)

    @property
    def kind(self) -> str:
        return {"float32": "F32", "float16": "F16", "uint16": "BF16"}[self.values.dtype.name]

    def raw(self) -> NDArray[np.uint8]:
        return np.ascontiguousarray(self.values).view(np.uint8)

    def read(self, first: int, out: Floats) -> None:
        rows = self.values[first : first + len(out)]
        if self.kind == "BF16":
            bfloat16.widen(rows, out)
        else:
            out[...] = rows


Activation = Any  # [R, …] of one backend: a tensor, or a handle while a pass is recorded
Indices = Any  # [R] or [M] int64 of one backend: a field of the batch it hands to the function it compiles
Packed = Any  # a weight in the layout its backend reads fastest: made by `Pack`, opaque to everyone else
Constant = Any  # values that a pass reads, where its backend wants them: made by `MakeConstant`


class MakeConstant(Protocol):
    def __call__(self, values: Floats | NDArray[np.int32]) -> Constant:
        """Host values of any shape, for use in every pass."""
        ...


@dataclass(frozen=True, slots=True)
class Norm:
    """RMS norm before the product (Zhang & Sennrich, arXiv 1910.07467)."""

    weight: Constant  # [K]
    eps: float


class Pack(Protocol):
    def __call__(
        self, matrix: Matrix, bias: Floats | None = None, *, gate: bool = False, form: str | None = None
    ) -> Packed:
        """matrix [N, K], bias [N] or None, on the host; gate: the weight is for a `linear` with the same flag.

        form: one of `backend.WEIGHTS` but "stored", to keep this weight in instead of what `Options.weights` says. Such
        a weight is no part of what a store keeps for the next start, and may be packed at any time: a drafter's. The
        reference has one format and ignores it.
        """
        ...


class Linear(Protocol):
    def __call__(
        self,
        x: Activation,
        weight: Packed,
        *,
        norm: Norm | None = None,
        residual: Activation | None = None,
        gate: bool = False,
        silu: bool = False,
        wide: bool = False,
    ) -> Activation:
        """x [R, K] -> [R, N], in the dtype of x; wide: in float32, as logits are wanted.

        norm: normalise x first. residual [R, N]: add to the result. gate: the weight's first N/2 rows are gates, the
        result is silu(first half) * second half, [R, N/2] (SwiGLU, Shazeer, arXiv 2002.05202). silu: the result is
        silu(x W^T + b), to which the residual is added (Medusa's block, Cai et al., arXiv 2401.10774); ValueError
        together with gate.
        """
        ...
