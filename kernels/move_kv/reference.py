"""Plain torch implementation of `move_kv`."""

import numpy as np
import torch
from numpy.typing import NDArray

from ..kv_cache.reference import TensorCache


def move_kv(cache: TensorCache, source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
    origins, places = (torch.from_numpy(slots).to(cache.k.device) for slots in (source, target))
    for side in (cache.k, cache.v):
        side.index_copy_(1, places, side.index_select(1, origins))
