"""`embed`: look token ids up in the embedding table."""

from typing import Protocol

import torch


class Embed(Protocol):
    def __call__(self, table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """table [V, H], ids [R] int64 -> [R, H]."""
        ...
