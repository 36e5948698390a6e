"""Matrices between torch, which tests judge by, and the kernels' contract."""

from __future__ import annotations

import numpy as np
import torch

from paceline.kernels.linear import ArrayMatrix, Matrix, float_pieces


def matrix_of(tensor: torch.Tensor) -> ArrayMatrix:
    """A tensor [N, K] of float32, float16 or bfloat16 as a matrix in memory with the same bits."""
    tensor = tensor.contiguous()
    return ArrayMatrix(tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy())


def dense(matrix: Matrix, rows: int = 1000) -> torch.Tensor:
    """[N, K] float32, read `rows` rows at a time."""
    return torch.from_numpy(np.concatenate([piece.copy() for piece in float_pieces(matrix, rows)]))
