"""Heads over the target's last hidden state as students: Medusa's, which guess blindly, and Hydra's, which are told
what was guessed before them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..heads import HYDRA, MEDUSA
from .student import Examples
from .target import Target


class _Block(nn.Module):
    """h + silu(W x + b), where x begins with h; it starts as h alone (Medusa's initialisation)."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, size)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x[..., : self.linear.out_features] + F.silu(self.linear(x))


class HeadsStudent:
    """One head per guess. Parameters are named "{head}.{block}.linear.weight", as in published Medusa checkpoints.

    Medusa (Cai et al., arXiv 2401.10774): head k reads h, the target's last hidden state after its final norm. Hydra
    (Ankner et al., arXiv 2402.05109): the first block of head k reads [h; e_1; …; e_(k+1)], with the target's
    embeddings of the pending token and of the k guesses after it. The target's head is used as it is.
    """

    def __init__(self, target: Target, heads: int, *, sequential: bool) -> None:
        self._target = target
        self._sequential = sequential
        self._blocks = 2 if sequential else 1  # Hydra's gains from a deeper one, Medusa's does not (both papers)
        size = target.hidden_size
        self.module = nn.ModuleList(
            nn.ModuleList(
                _Block(size * (head + 2) if sequential and block == 0 else size, size) for block in range(self._blocks)
            )
            for head in range(heads)
        )
        self._norm = torch.from_numpy(target.norm)

    def guesses(self, examples: Examples, depth: int) -> Iterator[Tensor]:
        places = examples.places
        last = examples.hidden[:, :places, -1]
        seen = F.rms_norm(last, last.shape[-1:], self._norm.to(last.device), self._target.eps)
        for k in range(depth):
            x = seen
            if self._sequential:
                x = torch.cat([x, *(examples.ahead(examples.embedded, 1 + i) for i in range(k + 1))], dim=-1)
            for block in self.module[k]:  # type: ignore[attr-defined]
                x = block(x)
            yield x

    def finish(self, rows: Tensor) -> Tensor:
        return rows

    def config(self) -> Mapping[str, object]:
        return {
            "architectures": [HYDRA if self._sequential else MEDUSA],
            "hidden_size": self._target.hidden_size,
            "medusa_num_heads": len(self.module),
            "medusa_num_layers": self._blocks,
        }

    def extras(self, vocabulary: NDArray[np.int64]) -> Mapping[str, Tensor]:
        return {"vocabulary": torch.from_numpy(vocabulary)}
