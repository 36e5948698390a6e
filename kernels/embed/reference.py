"""Plain torch implementation of `embed`; its table is a tensor [V, H]."""

import torch

from ..linear import Matrix
from ..linear.reference import Transposed, read


def pack_table(matrix: Matrix, *, dtype: torch.dtype, device: torch.device, form: str | None = None) -> torch.Tensor:
    return read(matrix, dtype, device)


def tied_head(table: torch.Tensor) -> Transposed:
    return Transposed(table.t().contiguous(), None)


def embed(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table.index_select(0, ids)
