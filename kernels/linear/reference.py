"""Plain torch implementation of `linear`."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from . import Floats, Matrix, Norm, float_pieces

_PIECE = 1024  # rows converted at once: loading never holds the model twice


@dataclass(frozen=True, slots=True)
class Transposed:
    """A weight as [K, N].

    On a CPU the library's product then costs almost the same from 1 to 16 rows, where the [N, K] layout costs three
    times as much at 16 rows as at 1. That flat stretch is where trees are verified.
    """

    data: torch.Tensor  # [K, N]
    bias: torch.Tensor | None  # [N]


def read(matrix: Matrix, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """[N, K] on the device."""
    tensor = torch.empty(matrix.shape, dtype=dtype, device=device)
    row = 0
    for piece in float_pieces(matrix, _PIECE):
        tensor[row : row + len(piece)] = torch.from_numpy(piece)
        row += len(piece)
    return tensor


def pack(
    matrix: Matrix,
    bias: Floats | None = None,
    *,
    dtype: torch.dtype,
    device: torch.device,
    gate: bool = False,
    form: str | None = None,
) -> Transposed:
    offsets = None if bias is None else torch.from_numpy(bias).to(device, dtype)
    return Transposed(read(matrix, dtype, device).t().contiguous(), offsets)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x [..., K] normalised over its last axis and scaled by weight [K], in float32."""
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


def linear(
    x: torch.Tensor,
    weight: Transposed,
    *,
    norm: Norm | None = None,
    residual: torch.Tensor | None = None,
    gate: bool = False,
    silu: bool = False,
    wide: bool = False,
) -> torch.Tensor:
    if gate and silu:
        raise ValueError("a gated result has no silu of its own")
    if norm is not None:
        x = rms_norm(x, norm.weight, norm.eps)
    y = x @ weight.data
    if weight.bias is not None:
        y += weight.bias
    if gate:
        first, second = y.chunk(2, dim=-1)
        y = functional.silu(first) * second
    if silu:
        y = functional.silu(y)
    y = y if residual is None else y.add_(residual)
    return y.float() if wide else y
