"""`select`: keep the rows whose next token is wanted."""

from typing import Protocol

import torch


class Select(Protocol):
    def __call__(self, x: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """x [R, H], rows [M] int64 -> [M, H]."""
        ...
