"""`linear` in Triton: one kernel for up to 64 rows or any number of them exactly, the library's product for more.

Reading the weight is the kernel's bound. Its tile of 16 rows of x is the least a matrix unit takes, and the same for
any number of rows, as are all other sizes: so the bits of a row are its own. What a program reads along K is cut into
units of 64 inputs, one for each of its warps: a batched `tl.dot` gives each warp a matrix of the batch. So every weight
and every x is unpacked by one warp only, and even few output columns keep all warps busy. The partial sums of the warps
meet in one fixed order at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl

from ..embed.triton_impl import integers, scale_word, scaled
from ..gpu.packing import Weight
from ..gpu.products import product, silu
from ..gpu.variant import Variant
from . import Norm

SMALL = 64  # rows: with more, arithmetic is the bound, and the library's product should be the better one
_ROWS = 16  # of a tile
_WIDE = {  # bits, gate: outputs of a tile wider than 16
    (0, False): (32,),
    (0, True): (),
    (4, False): (64, 32),
    (4, True): (64,),
    (8, False): (64, 32),
    (8, True): (32,),
}
_PROCESSORS = 132  # of an H100 or H200; assumed where there is no GPU


@triton.jit
def _operand(
    data,
    scales,
    at,
    unit,
    inputs,
    words,
    dtype: tl.constexpr,
    PART: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """[units, inputs of a part, rows of the weight]: part PART of the units [S] of the rows at [BLOCK_N]."""
    j = tl.arange(0, CHUNK)[None, :, None]
    at = at[None, None, :]
    if BITS == 0:
        k = unit[:, None, None] * 64 + PART * CHUNK + j
        values = tl.load(data + at * inputs + k, mask=k < inputs, other=0.0)
    else:
        units = tl.cdiv(inputs, 64)
        # Past the last unit x is zero: what stands there must be finite, and need not be.
        unit = tl.minimum(unit, units - 1)[:, None, None]
        if BITS == 4:
            packed = tl.load(data + at * units * 16 + unit * 16 + j)
        else:
            packed = tl.load(data + at * units * 64 + unit * 64 + PART * CHUNK + j)
        word = tl.load(scales + at * words + scale_word(unit, PART, BITS, GROUP))
        values = scaled(integers(packed, PART, BITS), word, PART, BITS).to(dtype)
    return values  # at the end: code after a return is compiled all the same


@triton.jit(do_not_specialize=["rows"])
def linear_kernel(
    x,
    data,
    scales,
    bias,
    norm,
    residual,
    out,
    rows,
    outputs,
    inputs,
    words,
    eps,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    GATE: tl.constexpr,
    SILU: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SLICES: tl.constexpr,
):
    """Program (m, n) makes out[m-th rows, n-th outputs]; programs of one n follow each other, so that L2 feeds them.

    outputs: those of `out`; with GATE the weight has twice as many rows.
    """
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    at = tl.minimum(n, outputs - 1).to(tl.int64)
    x_at = x + m.to(tl.int64)[None, :, None] * inputs
    present = (m < rows)[None, :, None]
    dtype: tl.constexpr = x.dtype.element_ty
    PARTS: tl.constexpr = 4 if BITS == 4 else (2 if BITS == 8 else 1)
    CHUNK: tl.constexpr = 64 // PARTS
    slices = tl.arange(0, SLICES)
    sums = tl.zeros([SLICES, BLOCK_M, BLOCK_N], tl.float32)
    gated = tl.zeros([SLICES, BLOCK_M, BLOCK_N], tl.float32)
    squares = tl.zeros([SLICES, BLOCK_M], tl.float32)
    for first in range(0, tl.cdiv(inputs, 64), SLICES):
        unit = first + slices
        for PART in tl.static_range(PARTS):
            k = (unit[:, None] * 64 + PART * CHUNK + tl.arange(0, CHUNK)[None, :])[:, None, :]
            a = tl.load(x_at + k, mask=present & (k < inputs), other=0.0)
            if norm is not None:
                wide = a.to(tl.float32)
                squares += tl.sum(wide * wide, 2)
                a = (wide * tl.load(norm + k, mask=k < inputs, other=0.0).to(tl.float32)).to(dtype)
            w = _operand(data, scales, at, unit, inputs, words, dtype, PART, BITS, GROUP, CHUNK)
            sums = tl.dot(a, w, sums, input_precision="ieee")
            if GATE:
                w = _operand(data, scales, at + outputs, unit, inputs, words, dtype, PART, BITS, GROUP, CHUNK)
                gated = tl.dot(a, w, gated, input_precision="ieee")
    y = tl.sum(sums, 0)
    if GATE:
        z = tl.sum(gated, 0)
    if norm is not None:
        factor = tl.rsqrt(tl.sum(squares, 0) / inputs + eps)[:, None]
        y *= factor
        if GATE:
            z *= factor
    if bias is not None:
        y += tl.load(bias + at)[None, :]
        if GATE:
            z += tl.load(bias + outputs + at)[None, :]
    if SILU:
        y = silu(y)
    if GATE:
        y = silu(y) * z
    place = m.to(tl.int64)[:, None] * outputs + n[None, :]
    inside = (m < rows)[:, None] & (n < outputs)[None, :]
    if residual is not None:
        y += tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + place, y.to(out.dtype.element_ty), mask=inside)


@dataclass(frozen=True, slots=True)
class _Launch:
    """How the kernel runs for one shape of weight on one device: nothing of it depends on the rows of x."""

    constants: dict[str, Any]
    warps: int
    stages: int

    @property
    def block(self) -> int:
        block: int = self.constants["BLOCK_N"]
        return block


def _launch(outputs: int, bits: int, group: int, gate: bool, silu: bool, processors: int) -> _Launch:
    """The widest tile that leaves next to no processor idle: the wider, the less often x is read and normalised.

    What there is to choose from spills no register and keeps within 64 KiB of shared memory, all that a gfx942 has.
    """
    block = next((size for size in _WIDE[bits, gate] if outputs / size >= 0.9 * processors), 16)
    # Where programs are narrow there is about one to a processor: more warps hide how long unpacking nibbles takes.
    many = bits == 4 and block <= 32
    warps = 8 if many else 4
    constants = {"BITS": bits, "GROUP": group, "GATE": gate, "SILU": silu, "BLOCK_M": _ROWS, "BLOCK_N": block}
    return _Launch(constants | {"SLICES": warps}, warps, 4 if bits and not many else 3)


@cache
def _processors(device: torch.device) -> int:
    if device.type == "cpu":
        return _PROCESSORS
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def linear(
    x: torch.Tensor,
    weight: Weight,
    *,
    norm: Norm | None = None,
    residual: torch.Tensor | None = None,
    gate: bool = False,
    silu: bool = False,
    wide: bool = False,
    exact: bool,
) -> torch.Tensor:
    """x [R, K] in the compute dtype; the contract's `Linear`. A residual is added in float32 before the one rounding.

    exact: with any number of rows the bits of a row are those it has alone.
    """
    if gate and silu:
        raise ValueError("a gated result has no silu of its own")
    x = x.contiguous()
    residual = None if residual is None else residual.contiguous()
    if len(x) > SMALL and not exact:
        return product(x, weight, norm=norm, residual=residual, gate=gate, silu=silu, wide=wide)
    outputs = weight.outputs // 2 if gate else weight.outputs
    out = torch.empty(len(x), outputs, dtype=torch.float32 if wide else x.dtype, device=x.device)
    if not len(x):
        return out
    launch = _launch(outputs, weight.bits, weight.group, gate, silu, _processors(x.device))
    linear_kernel[(triton.cdiv(len(x), _ROWS), triton.cdiv(outputs, launch.block))](
        x,
        weight.data,
        weight.scales,
        weight.bias,
        None if norm is None else norm.weight,
        residual,
        out,
        len(x),
        outputs,
        weight.inputs,
        0 if weight.scales is None else weight.scales.shape[1],
        0.0 if norm is None else norm.eps,
        **launch.constants,
        num_warps=launch.warps,
        num_stages=launch.stages,
    )
    return out


def variants() -> list[Variant]:
    """Of Llama 3.1 8B and of the default model: every format, with what is fused in where it happens."""
    return [
        _variant("linear-qkv-bf16", "bf16", 6144, norm=True),
        _variant("linear-gate-bf16", "bf16", 14336, norm=True, gate=True),
        _variant("linear-down-bf16", "bf16", 4096, residual=True),
        _variant("linear-head-bf16", "bf16", 128256, norm=True, out="fp32"),
        _variant("linear-small-down-bf16", "bf16", 576, residual=True),
        _variant("linear-bias-f16", "fp16", 960, norm=True, bias=True),
        _variant("linear-silu-bf16", "bf16", 4096, residual=True, silu=True, bias=True),
        _variant("linear-qkv-q4", "bf16", 6144, 4, 32, norm=True),
        _variant("linear-gate-q4", "bf16", 14336, 4, 32, norm=True, gate=True),
        _variant("linear-gate-q4-128", "bf16", 14336, 4, 128, norm=True, gate=True),
        _variant("linear-small-gate-q4", "bf16", 1536, 4, 32, norm=True, gate=True),
        _variant("linear-down-q4", "bf16", 4096, 4, 32, residual=True),
        _variant("linear-head-q4", "bf16", 128256, 4, 32, norm=True, out="fp32"),
        _variant("linear-gate-q8", "bf16", 14336, 8, 32, norm=True, gate=True),
        _variant("linear-down-q8-128", "bf16", 4096, 8, 128, residual=True),
        _variant("linear-head-q8", "bf16", 49152, 8, 32, norm=True, out="fp32"),
    ]


def _variant(
    name: str,
    dtype: str,
    outputs: int,
    bits: int = 0,
    group: int = 0,
    *,
    norm: bool = False,
    residual: bool = False,
    bias: bool = False,
    gate: bool = False,
    silu: bool = False,
    out: str | None = None,
) -> Variant:
    launch = _launch(outputs, bits, group, gate, silu, _PROCESSORS)
    pointers = {
        "x": f"*{dtype}",
        "data": {0: f"*{dtype}", 4: "*i16", 8: "*u8"}[bits],
        "scales": "*i32" if bits else None,
        "bias": "*fp32" if bias else None,
        "norm": "*fp32" if norm else None,
        "residual": f"*{dtype}" if residual else None,
        "out": f"*{out or dtype}",
    }
    present = {argument: kind for argument, kind in pointers.items() if kind is not None}
    sizes = {"rows": "i32", "outputs": "i32", "inputs": "i32", "words": "i32", "eps": "fp32"}
    return Variant(
        name,
        linear_kernel,
        present | sizes,
        {argument: None for argument, kind in pointers.items() if kind is None} | launch.constants,
        aligned=(*present, "outputs", "inputs", *(["words"] if bits else [])),
        num_warps=launch.warps,
        num_stages=launch.stages,
    )
