"""Plain torch implementation of `fill`."""

from __future__ import annotations

import torch


def fill(given: torch.Tensor, found: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    taken = found.index_select(0, sources.clamp(min=0)).to(given.dtype)
    return torch.where((sources >= 0).view(-1, *[1] * (given.dim() - 1)), taken, given)
