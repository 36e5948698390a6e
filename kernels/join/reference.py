"""Plain torch implementation of `join`."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def join(parts: Sequence[torch.Tensor], *, below: bool = False) -> torch.Tensor:
    if len({part.dtype for part in parts}) > 1:
        parts = [part.float() for part in parts]
    joined = torch.cat(list(parts), dim=1)
    return joined.view(-1, parts[0].shape[1]) if below else joined
