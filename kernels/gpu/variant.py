"""One kernel with fixed types and sizes, as a compiler is given it without a GPU at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ALIGNMENT = 16  # bytes, or elements of a size: what the launcher finds out about arguments that allow wide loads


@dataclass(frozen=True, slots=True)
class Variant:
    """A launch that happens in serving, to be compiled ahead of time for any target.

    name: unique among all. kernel: a function under `triton.jit`. types: of each argument that is no constant,
    as Triton spells it: "*bf16", "*i32", "i32". constants: values of the `tl.constexpr` arguments, and None for
    pointers that are absent. aligned: arguments that are multiples of `ALIGNMENT` when it is launched.
    """

    name: str
    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    aligned: tuple[str, ...] = ()
    num_warps: int = 4
    num_stages: int = 3
