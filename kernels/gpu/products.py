"""Products of many rows: the library's, between kernels for what surrounds it in a decoder."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch.nn import functional

from ..embed.triton_impl import unpack
from ..linear import Norm
from .packing import Weight
from .variant import Variant

_BLOCK = 1024
_WARPS = 4


@triton.jit
def silu(v):
    """v * sigmoid(v), by an exponential that cannot overflow."""
    e = tl.exp(-tl.abs(v))
    return v * tl.where(v >= 0, 1.0, e) / (1.0 + e)


@triton.jit
def norm_kernel(x, weight, out, inputs, eps, BLOCK: tl.constexpr):
    """Program r: the RMS norm of row r, read once, or where it is longer than a block, a second time from the cache."""
    row = tl.program_id(0).to(tl.int64) * inputs
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, inputs, BLOCK):
        k = first + tl.arange(0, BLOCK)
        v = tl.load(x + row + k, mask=k < inputs, other=0.0).to(tl.float32)
        squares += v * v
    factor = tl.rsqrt(tl.sum(squares, 0) / inputs + eps)
    for first in range(0, inputs, BLOCK):
        k = first + tl.arange(0, BLOCK)
        v = tl.load(x + row + k, mask=k < inputs, other=0.0).to(tl.float32)
        v *= factor * tl.load(weight + k, mask=k < inputs, other=0.0).to(tl.float32)
        tl.store(out + row + k, v.to(out.dtype.element_ty), mask=k < inputs)


@triton.jit
def finish_kernel(
    y,
    residual,
    out,
    outputs,
    GATE: tl.constexpr,
    SILU: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Program (r, b): block b of row r of a product, gated or activated, plus a residual."""
    row = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = n < outputs
    if GATE:
        v = tl.load(y + row * outputs * 2 + n, mask=inside, other=0.0).to(tl.float32)
        v = silu(v) * tl.load(y + row * outputs * 2 + outputs + n, mask=inside, other=0.0).to(tl.float32)
    else:
        v = tl.load(y + row * outputs + n, mask=inside, other=0.0).to(tl.float32)
        if SILU:
            v = silu(v)
    if residual is not None:
        v += tl.load(residual + row * outputs + n, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + row * outputs + n, v.to(out.dtype.element_ty), mask=inside)


def normalise(x: torch.Tensor, norm: Norm) -> torch.Tensor:
    """RMS norm of x [R, K] in float32, rounded to the dtype of x."""
    out = torch.empty_like(x)
    norm_kernel[(len(x),)](x, norm.weight, out, x.shape[1], norm.eps, BLOCK=_BLOCK, num_warps=_WARPS)
    return out


def finish(
    y: torch.Tensor, residual: torch.Tensor | None, dtype: torch.dtype, *, gate: bool, silu: bool
) -> torch.Tensor:
    """What follows a product y [R, N]; [R, N / 2] with a gate."""
    outputs = y.shape[1] // 2 if gate else y.shape[1]
    out = torch.empty(len(y), outputs, dtype=dtype, device=y.device)
    finish_kernel[(len(y), triton.cdiv(outputs, _BLOCK))](
        y, residual, out, outputs, **_constants(gate, silu), num_warps=_WARPS
    )
    return out


def product(
    x: torch.Tensor,
    weight: Weight,
    *,
    norm: Norm | None = None,
    residual: torch.Tensor | None = None,
    gate: bool = False,
    silu: bool = False,
    wide: bool = False,
) -> torch.Tensor:
    """The contract of `Linear`, for more than a few rows. A quantised weight is unpacked into scratch memory first."""
    if norm is not None:
        x = normalise(x, norm)
    values = unpack(weight) if weight.bits else weight.data
    y = _wide(x, values, weight.bias) if wide else functional.linear(x, values, _bias(weight, x.dtype))
    if gate or silu or residual is not None:
        return finish(y, residual, y.dtype, gate=gate, silu=silu)
    return y


def _bias(weight: Weight, dtype: torch.dtype) -> torch.Tensor | None:
    return None if weight.bias is None else weight.bias.to(dtype)


def _wide(x: torch.Tensor, values: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """[R, N] float32, straight from the library's accumulator where it gives that out."""
    if x.is_cuda and torch.version.hip is None and x.dtype != torch.float32:
        y = torch.mm(x, values.t(), out_dtype=torch.float32)
    else:
        y = functional.linear(x, values).float()
    return y if bias is None else y.add_(bias)


def _constants(gate: bool, silu: bool) -> dict[str, Any]:
    return {"GATE": gate, "SILU": silu, "BLOCK": _BLOCK}


def variants() -> list[Variant]:
    types = {"y": "*bf16", "residual": "*bf16", "out": "*bf16", "outputs": "i32"}
    gate = {argument: kind for argument, kind in types.items() if argument != "residual"}
    return [
        Variant(
            "norm-bf16",
            norm_kernel,
            {"x": "*bf16", "weight": "*fp32", "out": "*bf16", "inputs": "i32", "eps": "fp32"},
            {"BLOCK": _BLOCK},
            aligned=("x", "weight", "out", "inputs"),
            num_warps=_WARPS,
        ),
        Variant(
            "gate-bf16",
            finish_kernel,
            gate,
            {"residual": None} | _constants(True, False),
            aligned=tuple(gate),
            num_warps=_WARPS,
        ),
        Variant(
            "residual-bf16",
            finish_kernel,
            types,
            _constants(False, False),
            aligned=tuple(types),
            num_warps=_WARPS,
        ),
    ]
