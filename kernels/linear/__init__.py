"""`linear`: rows times a packed weight, with what surrounds it in a decoder fused in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray


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


class Matrix(Protocol):
    """A weight [N, K] that is not packed yet: tensors stacked by rows."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def parts(self) -> Sequence[Stored]: ...

    def dense(self) -> torch.Tensor:
        """[N, K] on the model's device and in its dtype."""
        ...


@dataclass(frozen=True, slots=True)
class TensorMatrix:
    """A matrix in memory, [N, K] float32, float16 or bfloat16. Implements `Matrix` and, as its only part, `Stored`."""

    tensor: torch.Tensor
    name: str = "tensor"

    @property
    def shape(self) -> tuple[int, int]:
        return self.tensor.shape[0], self.tensor.shape[1]

    @property
    def parts(self) -> tuple[TensorMatrix]:
        return (self,)

    @property
    def kind(self) -> str:
        return {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}[self.tensor.dtype]

    def raw(self) -> NDArray[np.uint8]:
        data: NDArray[np.uint8] = self.tensor.contiguous().view(torch.uint8).numpy()
        return data

    def dense(self) -> torch.Tensor:
        return self.tensor


Activation = Any  # [R, …] of one backend: a tensor, or a handle while a pass is recorded
Packed = Any  # a weight in the layout its backend reads fastest: made by `Pack`, opaque to everyone else


@dataclass(frozen=True, slots=True)
class Norm:
    """RMS norm before the product (Zhang & Sennrich, arXiv 1910.07467)."""

    weight: torch.Tensor  # [K]
    eps: float


class Pack(Protocol):
    def __call__(self, matrix: Matrix, bias: torch.Tensor | None = None, *, gate: bool = False) -> Packed:
        """matrix [N, K], bias [N] or None; gate: the weight is for a `linear` with the same flag."""
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
    ) -> Activation:
        """x [R, K] -> [R, N], in the dtype of x.

        norm: normalise x first. residual [R, N]: add to the result. gate: the weight's first N/2 rows are gates, the
        result is silu(first half) * second half, [R, N/2] (SwiGLU, Shazeer, arXiv 2002.05202).
        """
        ...
