"""`move_kv`: copy the cache entries of accepted nodes that stand off the line to where the line continues."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..kv_cache import Cache


class MoveKV(Protocol):
    def __call__(self, cache: Cache, source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
        """Copy slot source[i] to slot target[i] in every layer, all at once: reads happen before writes.

        source, target: [M], contiguous; the targets are distinct.
        """
        ...
