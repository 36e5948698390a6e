"""Tensors as a checkpoint stores them, by their bytes, and matrices made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from gguf import GGMLQuantizationType
from gguf.quants import quantize
from numpy.typing import NDArray

from paceline.engine.model.dequantize import dequantize
from paceline.kernels.linear import Stored


@dataclass(frozen=True)
class Part:
    """Implements `Stored`."""

    name: str
    kind: str
    bytes_: NDArray[np.uint8]
    columns: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.bytes_), self.columns

    def raw(self) -> NDArray[np.uint8]:
        return self.bytes_

    def read(self, first: int, out: NDArray[np.float32]) -> None:
        dequantize(np.ascontiguousarray(self.bytes_[first : first + len(out)]), self.kind, out)


@dataclass(frozen=True)
class Stack:
    """Parts by rows. Implements `Matrix`."""

    parts: Sequence[Stored]

    @property
    def shape(self) -> tuple[int, int]:
        return sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]

    def values(self) -> NDArray[np.float32]:
        out, row = np.empty(self.shape, np.float32), 0
        for part in self.parts:
            part.read(0, out[row : row + part.shape[0]])
            row += part.shape[0]
        return out


def stored(kind: str, rows: int, columns: int, seed: int = 0, *, wild: bool = False) -> Part:
    """wild: any bytes at all, so that every integer and odd scales occur; scales are finite and moderate."""
    random = np.random.default_rng([seed, rows, columns])
    values = random.standard_normal((rows, columns), np.float32)
    raw = np.ascontiguousarray(quantize(values, GGMLQuantizationType[kind])).view(np.uint8).reshape(rows, -1)
    if wild and kind in ("Q4_0", "Q4_1", "Q8_0"):
        head = 4 if kind == "Q4_1" else 2
        blocks = random.integers(0, 256, raw.size, np.uint8).reshape(rows, columns // 32, -1)
        blocks[..., 1:head:2] &= 0b10111011  # exponents of at most 0b01110: below one
        raw = blocks.reshape(rows, -1)
    return Part(f"{kind} {seed}", kind, raw, columns)
