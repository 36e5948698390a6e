"""What a trainer is given of the model it makes a drafter for: arrays, and passes behind protocols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .dialogues import Wish

Floats = NDArray[np.float32]


class TrainingError(Exception):
    """Training that cannot begin or go on; the text is one sentence for a person: what is wrong and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerArrays:
    """Weights of one of the target's layers. H hidden, I intermediate, Hq and Hkv heads of size D."""

    q: Floats  # [Hq D, H]
    k: Floats  # [Hkv D, H]
    v: Floats  # [Hkv D, H]
    out: Floats  # [H, Hq D]
    gate: Floats  # [I, H]
    up: Floats  # [I, H]
    down: Floats  # [H, I]
    attn_norm: Floats  # [H]
    ffn_norm: Floats  # [H]
    qkv_bias: Floats | None = None  # [(Hq + 2 Hkv) D]
    q_norm: Floats | None = None  # [D], of each head
    k_norm: Floats | None = None  # [D]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The model that is drafted for.

    layer: reads one of its `layers`, counted from 0. trained_for: the number by which a server knows the model again.
    """

    embed: Floats  # [V, H]
    head: Floats  # [V, H]; the same object as embed where the two are tied
    norm: Floats  # [H]
    eps: float
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    rope_theta: float
    layers: int
    context_length: int
    trained_for: int
    layer: Callable[[int], LayerArrays]

    @property
    def vocab_size(self) -> int:
        return len(self.head)

    @property
    def hidden_size(self) -> int:
        return len(self.norm)


class Writer(Protocol):
    """Continues token sequences, many at once."""

    @property
    def most(self) -> int:
        """How many it works on at once without one waiting for another."""
        ...

    def begin(self, key: int, wish: Wish) -> None: ...

    def advance(self) -> list[tuple[int, list[int]]]:
        """Work for a while: (key, what was written) of those that are finished, without the token that ended them."""
        ...


class Teacher(Protocol):
    """Runs the target over texts; made for T taps, numbers of layers."""

    def hidden(self, tokens: Sequence[int]) -> Floats:
        """tokens [n] -> [n, T, H]: what the target has made of each token after so many layers, without a norm."""
        ...
