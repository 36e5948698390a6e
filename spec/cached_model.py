"""What a model with a cache is to a drafter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from paceline.kernels.backend import Compile
from paceline.kernels.batch import Batch
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation
from paceline.kernels.rank import Vocabulary


class CachedModel(Protocol):
    """What a pass looks like: every row's keys and values go to its slot, the sampled rows' results come back."""

    @property
    def vocabulary(self) -> Vocabulary | None:
        """[N] the target's id of each column; None where columns are ids."""
        ...

    @property
    def forward(self) -> Callable[[Batch, Cache], tuple[Activation, ...]]:
        """-> (logits [M, N], hidden [M, H], …), valid until the next pass."""
        ...

    def body(self, batch: Any, cache: Cache) -> tuple[Activation, ...]:
        """What `forward` computes, inside a pass: the batch has its fields as the backend wants them."""
        ...

    @property
    def compile(self) -> Compile:
        """Makes a pass of a function that calls `body`."""
        ...
