"""Host arrays of one step brought to the device together, and what was computed there brought back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .variant import ALIGNMENT

_TYPES = {np.dtype(np.int32): torch.int32, np.dtype(np.int64): torch.int64, np.dtype(np.float64): torch.float64}


def upload(arrays: Sequence[NDArray[Any]], device: torch.device) -> list[torch.Tensor]:
    """Copies of arrays of int32, int64 or float64: one asynchronous copy out of pinned memory, however many they are.

    The tensors share their storage, and each starts at a multiple of `ALIGNMENT` bytes: launchers tell compiled kernels
    apart by that.
    """
    starts, end = [], 0
    for array in arrays:
        starts.append(end)
        end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    # Torch's allocator keeps pinned memory until copies that were started from it are done.
    staged = torch.empty(end, dtype=torch.uint8, pin_memory=device.type == "cuda")
    memory = staged.numpy()
    for array, start in zip(arrays, starts, strict=True):
        memory[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    moved = staged.to(device, non_blocking=True)
    return [
        moved[start : start + array.nbytes].view(_TYPES[array.dtype]).view(array.shape)
        for array, start in zip(arrays, starts, strict=True)
    ]


def host(logits: torch.Tensor) -> NDArray[np.float32]:
    """The values as the host reads them, which waits for the device."""
    rows: NDArray[np.float32] = logits.float().cpu().numpy()
    return rows
