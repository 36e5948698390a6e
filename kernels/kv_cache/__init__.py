"""The paged key/value cache as ops see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

Cache = Any  # made by `Allocate`, opaque to everyone but its backend


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What a model asks of a cache; its backend adds device and format."""

    layers: int
    kv_heads: int
    head_dim: int


class Allocate(Protocol):
    def __call__(self, shape: CacheShape, blocks: int) -> Cache:
        """A cache of blocks * 16 slots, whose content is finite."""
        ...


class BlockBytes(Protocol):
    def __call__(self, shape: CacheShape) -> int:
        """Memory one block takes over all layers, keys and values together; computed, nothing is allocated."""
        ...
