"""One kernel with fixed types and sizes, as a compiler is given it without a GPU at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ALIGNMENT = 16  # bytes, or elements of a size: what the launcher finds out about arguments that allow wide loads
TARGETS = ("sm_80", "sm_90", "gfx942")


@dataclass(frozen=True, slots=True)
class Variant:
    """A launch that happens in serving, to be compiled ahead of time for any target.

    name: unique among its module's. kernel: a function under `triton.jit`. types: of each argument that is no constant,
    as Triton spells it: "*bf16", "*i32", "i32". constants: values of the `tl.constexpr` arguments, and None for
    pointers that are absent. aligned: arguments that are multiples of `ALIGNMENT` when it is launched. targets: all
    but those whose hardware lacks what it needs, as sm_80 lacks the type fp8e4nv.

    Raises ValueError when the kernel's arguments are not each given a type or a value.
    """

    name: str
    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    aligned: tuple[str, ...] = ()
    num_warps: int = 4
    num_stages: int = 3
    targets: tuple[str, ...] = TARGETS

    def __post_init__(self) -> None:
        if sorted(self.kernel.arg_names) != sorted([*self.types, *self.constants]):
            given, wanted = {*self.types, *self.constants}, set(self.kernel.arg_names)
            raise ValueError(
                f"{self.name}: each argument needs a type or a value; missing {sorted(wanted - given)}, "
                f"unknown {sorted(given - wanted)}, twice {sorted({*self.types} & {*self.constants})}."
            )
        if unknown := {*self.aligned} - {*self.types} or {*self.targets} - {*TARGETS}:
            raise ValueError(f"{self.name}: {sorted(unknown)} are no arguments with a type, or no known targets.")
