"""`move_kv`: copy the cache entries of accepted nodes that stand off the line to where the line continues."""

from typing import Protocol

import torch

from ..kv_cache import Cache


class MoveKV(Protocol):
    def __call__(self, cache: Cache, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copy slot source[i] to slot target[i] in every layer, all at once: reads happen before writes.

        source, target: [M] int64; the targets are distinct.
        """
        ...
