"""`embed` in Triton: rows of a packed weight, dequantised where they are quantised."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from ..gpu.packing import Weight
from ..gpu.variant import Variant

_UNITS = 16  # that a program reads: 1024 inputs of one row
_WARPS = 4


@triton.jit
def integers(packed, PART: tl.constexpr, BITS: tl.constexpr):
    """The integers of one part of a unit in float32, of any shape: nibble PART of words, or whole bytes less 128.

    An integer below 2^23 in the mantissa of 2^23 is a float that exceeds it by just that integer; with the exponent
    lower by one, a bit counts double. So a nibble is used where it lies: one mask, one subtraction, no conversion.
    """
    if BITS == 4:
        bits = (packed.to(tl.int32) & (15 << (4 * PART))) | ((150 - 4 * PART) << 23)
        q = bits.to(tl.float32, bitcast=True) - (8388608 >> (4 * PART))
    else:
        q = (packed.to(tl.int32) | 0x4B000000).to(tl.float32, bitcast=True) - (8388608 + 128)
    return q


@triton.jit
def low_half(word):
    return (word & 0xFFFF).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def high_half(word):
    return (word >> 16).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)


@triton.jit
def scale_word(unit, PART: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr):
    """Where in a row of scales the word for a part of each unit lies."""
    if GROUP == 128:
        at = unit // 2
    elif BITS == 4:
        at = unit * 2 + PART // 2
    else:
        at = unit
    return at


@triton.jit
def scaled(q, word, PART: tl.constexpr, BITS: tl.constexpr):
    """Values in float32. scale * q needs 15 or 19 bits: exact, so that contracting the sum changes nothing."""
    if BITS == 4:
        values = q * low_half(word) + high_half(word)
    elif PART % 2 == 0:
        values = q * low_half(word)
    else:
        values = q * high_half(word)
    return values


@triton.jit
def rows_kernel(ids, data, scales, out, inputs, words, BITS: tl.constexpr, GROUP: tl.constexpr, UNITS: tl.constexpr):
    """Program (r, b): units b * UNITS … of row ids[r] of the weight, or of row r where there are no ids."""
    row = tl.program_id(0).to(tl.int64)
    at = row if ids is None else tl.load(ids + row).to(tl.int64)
    readable = tl.where(at >= 0, inputs, 0)  # of a padding row nothing
    at = tl.maximum(at, 0)
    unit = tl.program_id(1) * UNITS + tl.arange(0, UNITS)
    units = tl.cdiv(inputs, 64)
    PARTS: tl.constexpr = 4 if BITS == 4 else (2 if BITS == 8 else 1)
    CHUNK: tl.constexpr = 64 // PARTS
    j = tl.arange(0, CHUNK)[None, :]
    present = unit * 64 < readable
    if BITS == 4:
        packed = tl.load(data + at * units * 16 + unit[:, None] * 16 + j, mask=present[:, None], other=0)
    for PART in tl.static_range(PARTS):
        k = unit[:, None] * 64 + PART * CHUNK + j
        if BITS == 0:
            values = tl.load(data + at * inputs + k, mask=k < readable, other=0.0)
        else:
            if BITS == 8:
                packed = tl.load(data + at * units * 64 + k, mask=present[:, None], other=0)
            word = tl.load(scales + at * words + scale_word(unit, PART, BITS, GROUP), mask=present, other=0)
            values = scaled(integers(packed, PART, BITS), word[:, None], PART, BITS)
        tl.store(out + row * inputs + k, values.to(out.dtype.element_ty), mask=k < inputs)


def _constants(bits: int, group: int) -> dict[str, Any]:
    return {"BITS": bits, "GROUP": group, "UNITS": _UNITS}


def unpack(weight: Weight, ids: torch.Tensor | None = None) -> torch.Tensor:
    """Rows `ids` [R] of a weight, or all of them -> [R, K] in its dtype; a row whose id is negative is zeros."""
    rows = weight.outputs if ids is None else len(ids)
    out = torch.empty(rows, weight.inputs, dtype=weight.dtype, device=weight.data.device)
    words = 0 if weight.scales is None else weight.scales.shape[1]
    if rows:
        rows_kernel[(rows, triton.cdiv(weight.inputs, 64 * _UNITS))](
            *(ids, weight.data, weight.scales, out, weight.inputs, words),
            **_constants(weight.bits, weight.group),
            num_warps=_WARPS,
        )
    return out


def embed(table: Weight, ids: torch.Tensor) -> torch.Tensor:
    """ids [R] of any integer dtype -> [R, H] in the compute dtype; an id of -1 marks padding and gives zeros."""
    return unpack(table, ids)


def variants() -> list[Variant]:
    """A table of each kind looked up, and a q4 weight unpacked for the library's product."""
    made = []
    for name, bits, group, ids, data in (
        ("embed-bf16", 0, 0, "*i64", "*bf16"),
        ("embed-q4", 4, 32, "*i64", "*i16"),
        ("embed-q8", 8, 32, "*i64", "*u8"),
        ("unpack-q4", 4, 32, None, "*i16"),
    ):
        types = {"ids": ids, "data": data, "scales": "*i32" if bits else None, "out": "*bf16"}
        present = {argument: kind for argument, kind in types.items() if kind is not None}
        absent = {argument: None for argument, kind in types.items() if kind is None}
        made.append(
            Variant(
                name,
                rows_kernel,
                present | {"inputs": "i32", "words": "i32"},
                absent | _constants(bits, group),
                aligned=(*present, "inputs"),
                num_warps=_WARPS,
            )
        )
    return made
