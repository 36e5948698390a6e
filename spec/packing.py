"""A drafter's own weights, as its pass takes them."""

from __future__ import annotations

from dataclasses import dataclass

from paceline.kernels.backend import Ops
from paceline.kernels.linear import ArrayMatrix, Norm, Packed

from .guess_tree import Floats


@dataclass(frozen=True, slots=True)
class Packing:
    """form: what matrices are packed in. eps: of the norms."""

    ops: Ops
    form: str
    eps: float

    def matrix(self, values: Floats, gate: bool = False) -> Packed:
        """values [N, K]; gate: the first half of the rows gates the second."""
        return self.ops.pack(ArrayMatrix(values), form=self.form, gate=gate)

    def norm(self, weight: Floats) -> Norm:
        """weight [K]"""
        return Norm(self.ops.constant(weight), self.eps)
