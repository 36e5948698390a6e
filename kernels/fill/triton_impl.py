"""Triton implementation of `fill`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from ..gpu.variant import Variant

_BLOCK = 1024
_WARPS = 4


@triton.jit
def _fill_kernel(given, found, stride, sources, out, width, BLOCK: tl.constexpr):
    """Program (r, b): block b of row r. stride: from one row of `found` to the next."""
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < width
    source = tl.load(sources + row)
    place = row.to(tl.int64) * width + column
    if source < 0:
        tl.store(out + place, tl.load(given + place, mask=inside), mask=inside)
    else:
        taken = tl.load(found + source.to(tl.int64) * stride + column, mask=inside)
        tl.store(out + place, taken.to(out.dtype.element_ty), mask=inside)


def fill(given: torch.Tensor, found: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    """The contract of `Fill`; rows of `given` are contiguous, and so is each of `found`."""
    out = torch.empty_like(given)
    rows, width = len(given), given[0].numel()
    _fill_kernel[(rows, triton.cdiv(width, _BLOCK))](
        given, found, found.stride(0), sources, out, width, BLOCK=_BLOCK, num_warps=_WARPS
    )
    return out


def variants() -> list[Variant]:
    """Ids, and the states that a drafter reads beside them."""
    made = []
    for name, kept, taken in (("ids", "*i32", "*i32"), ("states", "*fp32", "*bf16")):
        types = {"given": kept, "found": taken, "stride": "i32", "sources": "*i32", "out": kept, "width": "i32"}
        aligned = tuple(argument for argument in types if name == "states" or argument not in ("stride", "width"))
        made.append(Variant(name, _fill_kernel, types, {"BLOCK": _BLOCK}, aligned, num_warps=_WARPS))
    return made
