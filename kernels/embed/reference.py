"""Plain torch implementation of `embed`; its table is a tensor [V, H]."""

import torch

from ..linear.reference import Transposed


def tied_head(table: torch.Tensor) -> Transposed:
    return Transposed(table.t().contiguous(), None)


def embed(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table.index_select(0, ids)
