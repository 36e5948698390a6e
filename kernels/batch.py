"""The rows of one pass, as tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .tree_attention import Layout


@dataclass(frozen=True, slots=True)
class Batch:
    """R rows on the model's device; `layout` stays on the host."""

    ids: torch.Tensor  # [R] int64
    positions: torch.Tensor  # [R] int64
    slots: torch.Tensor  # [R] int64
    sampled: torch.Tensor  # [M] int64, rows whose next token is wanted
    layout: Layout
