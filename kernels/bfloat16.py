"""bfloat16, which numpy lacks, by its bits: the upper half of a float32."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def widen(bits: NDArray[np.uint16], out: NDArray[np.float32]) -> None:
    """The values that `bits` stand for, into `out` of the same shape."""
    np.left_shift(bits, 16, out=out.view(np.uint32), dtype=np.uint32)


def narrow(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Bits of the nearest bfloat16 values, ties to even; NaN stays NaN, and what is too large becomes infinity."""
    bits = values.view(np.uint32)
    # Half of what is cut off, less one where the kept part is even: a tie then rounds up only from odd.
    rounded = bits + (np.uint32(0x7FFF) + ((bits >> 16) & 1))
    # The sum would carry a NaN over into infinity or zero; it is cut instead, and keeps a bit of what makes it one.
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded >> 16).astype(np.uint16)
