"""`linear`: rows times a packed weight, with what surrounds it in a decoder fused in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch


@dataclass(frozen=True, slots=True)
class PackedLinear:
    """A weight [N, K] in the layout its backend reads fastest; made by `Pack`, opaque to everyone else."""

    data: torch.Tensor
    bias: torch.Tensor | None  # [N]


@dataclass(frozen=True, slots=True)
class Norm:
    """RMS norm before the product (Zhang & Sennrich, arXiv 1910.07467)."""

    weight: torch.Tensor  # [K]
    eps: float


class Pack(Protocol):
    def __call__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> PackedLinear:
        """weight [N, K], bias [N] or None."""
        ...


class Linear(Protocol):
    def __call__(
        self,
        x: torch.Tensor,
        weight: PackedLinear,
        *,
        norm: Norm | None = None,
        residual: torch.Tensor | None = None,
        gate: bool = False,
    ) -> torch.Tensor:
        """x [R, K] -> [R, N], in the dtype of x.

        norm: normalise x first. residual [R, N]: add to the result. gate: the weight's first N/2 rows are gates, the
        result is silu(first half) * second half, [R, N/2] (SwiGLU, Shazeer, arXiv 2002.05202).
        """
        ...
