"""Plain torch implementation of `move_kv`."""

import torch

from ..kv_cache import TensorCache


def move_kv(cache: TensorCache, source: torch.Tensor, target: torch.Tensor) -> None:
    for side in (cache.k, cache.v):
        side.index_copy_(1, target, side.index_select(1, source))
