"""Plain torch implementation of `select`."""

import torch


def select(x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return x.index_select(0, rows)
