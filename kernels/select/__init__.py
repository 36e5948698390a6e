"""`select`: keep the rows whose next token is wanted."""

from typing import Protocol

import torch

from ..linear import Activation


class Select(Protocol):
    def __call__(self, x: Activation, rows: torch.Tensor) -> Activation:
        """x [R, H], rows [M] int64 -> [M, H]."""
        ...
