"""Plain torch implementation of `embed`."""

import torch

from ..linear import Matrix, TensorMatrix
from ..linear.reference import Transposed, pack


def pack_table(matrix: Matrix) -> torch.Tensor:
    return matrix.dense()


def tied_head(table: torch.Tensor) -> Transposed:
    return pack(TensorMatrix(table))


def embed(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    return table.index_select(0, ids)
