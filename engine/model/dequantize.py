"""GGML block formats to float32, by numpy, a cache-sized piece at a time.

Layouts (little endian, 32 values per block), from the GGML sources' `block_q4_0`, `block_q4_1`, `block_q8_0`:
Q4_0 = scale d, 16 bytes of nibbles, value (q - 8) d; Q4_1 = d, minimum m, nibbles, value q d + m; Q8_0 = d, 32 int8,
value q d. The low nibbles are values 0-15 of the block, the high ones 16-31. d and m are float16.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from paceline.kernels import bfloat16

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 32

_LAYOUTS: Mapping[str, np.dtype[np.void]] = MappingProxyType(
    {
        "Q4_0": np.dtype([("d", "<f2"), ("q", "u1", (BLOCK // 2,))]),
        "Q4_1": np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", (BLOCK // 2,))]),
        "Q8_0": np.dtype([("d", "<f2"), ("q", "i1", (BLOCK,))]),
    }
)
SUPPORTED = ("F32", "F16", "BF16", *_LAYOUTS)


def row_bytes(kind: str, columns: int) -> int:
    """Bytes of one row of `columns` values (a multiple of 32 for the block formats)."""
    if kind in _LAYOUTS:
        return columns // BLOCK * _LAYOUTS[kind].itemsize
    return columns * (4 if kind == "F32" else 2)


def dequantize(raw: NDArray[np.uint8], kind: str, out: NDArray[np.float32]) -> None:
    """Turn rows of bytes [rows, row_bytes(kind, columns)] into `out` [rows, columns], both C-contiguous."""
    if kind == "F32":
        out[...] = raw.view("<f4")
    elif kind == "F16":
        out[...] = raw.view("<f2")
    elif kind == "BF16":
        bfloat16.widen(raw.view("<u2"), out)
    else:
        _blocks(raw.reshape(-1).view(_LAYOUTS[kind]), kind, out.reshape(-1, BLOCK))


def _blocks(blocks: NDArray[np.void], kind: str, out: NDArray[np.float32]) -> None:
    scale = blocks["d"].astype(np.float32)[:, None]
    if kind == "Q8_0":
        out[...] = blocks["q"]
        out *= scale
        return
    nibbles = blocks["q"]
    half = BLOCK // 2
    out[:, :half] = nibbles & 15
    out[:, half:] = nibbles >> 4
    if kind == "Q4_0":
        out -= 8
        out *= scale
    else:
        out *= scale
        out += blocks["m"].astype(np.float32)[:, None]
