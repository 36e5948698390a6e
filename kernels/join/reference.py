"""Plain torch implementation of `join`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import torch


def join(parts: Sequence[torch.Tensor], *, below: bool = False) -> torch.Tensor:
    # Neighbours of one type are joined first: on a GPU every call is a launch, and a conversion is one more.
    runs = [torch.cat(list(run), dim=1) for _, run in groupby(parts, key=lambda part: part.dtype)]
    joined = runs[0] if len(runs) == 1 else torch.cat([run.float() for run in runs], dim=1)
    return joined.view(-1, parts[0].shape[1]) if below else joined
