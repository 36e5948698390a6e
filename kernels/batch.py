"""The rows of one pass, as the host has them: a backend moves them to where it computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .tree_attention import Layout


@dataclass(frozen=True, slots=True)
class Batch:
    """R rows."""

    ids: NDArray[np.int64]  # [R]
    positions: NDArray[np.int64]  # [R]
    slots: NDArray[np.int64]  # [R]
    sampled: NDArray[np.int64]  # [M], rows whose next token is wanted
    layout: Layout
    features: NDArray[np.float32] | None = None  # [R, W], for a pass that calls `feed`
