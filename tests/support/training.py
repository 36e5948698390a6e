"""A tiny target and its passes, for tests of training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from paceline.spec.training.dialogues import Frame, Wish
from paceline.spec.training.student import Examples
from paceline.spec.training.target import Floats, LayerArrays, Target

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INNER = 32, 4, 2, 8, 48


def random_target(vocab: int = 29, seed: int = 0) -> Target:
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return (random.standard_normal((rows, columns)) * columns**-0.5).astype(np.float32)

    def norm() -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        return (1 + 0.2 * random.standard_normal(HIDDEN)).astype(np.float32)

    def layer() -> LayerArrays:
        return LayerArrays(
            q=matrix(HEADS * HEAD_DIM, HIDDEN),
            k=matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            v=matrix(KV_HEADS * HEAD_DIM, HIDDEN),
            out=matrix(HIDDEN, HEADS * HEAD_DIM),
            gate=matrix(INNER, HIDDEN),
            up=matrix(INNER, HIDDEN),
            down=matrix(HIDDEN, INNER),
            attn_norm=norm(),
            ffn_norm=norm(),
        )

    layers = [layer(), layer()]
    return Target(
        embed=matrix(vocab, HIDDEN) * 3,
        head=matrix(vocab, HIDDEN) * 3,
        norm=norm(),
        eps=1e-5,
        heads=HEADS,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        intermediate=INNER,
        rope_theta=10000.0,
        layers=len(layers),
        context_length=256,
        trained_for=7,
        layer=layers.__getitem__,
    )


def examples_of(
    target: Target, tokens: list[list[int]], hidden: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> Examples:
    """tokens [B, L], hidden [B, L, T, H]; every token is an answer."""
    ids = torch.tensor(tokens)
    return Examples(
        ids, torch.from_numpy(target.embed)[ids], torch.from_numpy(hidden), torch.ones_like(ids, dtype=torch.bool)
    )


FRAME = Frame(before=(1, 2), between=(3, 4), again=(3, 5))


class ScriptedWriter:
    """Implements `Writer`: what is written is a pure function of the wish, and follows a rule worth learning.

    most: how many are worked on at once; they are finished one by one, in another order. dies_after: raises
    KeyboardInterrupt once so many are finished.
    """

    def __init__(self, vocab: int = 29, most: int = 4, dies_after: int | None = None) -> None:
        self.most = most
        self._vocab = vocab
        self._dies_after = dies_after
        self._waiting: list[tuple[int, Wish]] = []
        self.finished = 0

    def begin(self, key: int, wish: Wish) -> None:
        self._waiting.append((key, wish))

    def advance(self) -> list[tuple[int, list[int]]]:
        if self.finished == self._dies_after:
            raise KeyboardInterrupt
        self.finished += 1
        key, wish = self._waiting.pop(self.finished % len(self._waiting))
        length = 4 + wish.seed % 12
        token, written = wish.prompt[-1], []
        for _ in range(min(length, wish.max_tokens)):
            token = 6 + (2 * token + 3) % (self._vocab - 6)
            written.append(token)
        return [(key, written)]


class ScriptedTeacher:
    """Implements `Teacher`: the last state says which token is next, clearly, the others say what the token is.

    dies_after: raises KeyboardInterrupt once it has read so many texts.
    """

    def __init__(self, target: Target, taps: Sequence[int], dies_after: int | None = None) -> None:
        self._target = target
        self._taps = taps
        self._dies_after = dies_after
        self.read = 0

    def hidden(self, tokens: Sequence[int]) -> Floats:
        if self.read == self._dies_after:
            raise KeyboardInterrupt
        self.read += 1
        following = [6 + (2 * token + 3) % (self._target.vocab_size - 6) for token in tokens]
        states = self._target.head[following] / self._target.norm
        early = self._target.embed[list(tokens)]
        return np.stack([*([early] * (len(self._taps) - 1)), states], axis=1)


class Quiet:
    """Implements `Progress`. dies_at: raises KeyboardInterrupt when this share of a stage is reported."""

    def __init__(self, dies_at: tuple[str, float] | None = None) -> None:
        self._dies_at = dies_at
        self.stages: dict[str, list[tuple[float, str]]] = {}

    def report(self, stage: str, share: float, note: str = "") -> None:
        self.stages.setdefault(stage, []).append((share, note))
        if self._dies_at and stage == self._dies_at[0] and share >= self._dies_at[1]:
            raise KeyboardInterrupt


def draw_parameters(module: nn.Module) -> None:
    """Every parameter random: matrices keep sizes, norms stay around one."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(noise * parameter.shape[1] ** -0.5 if parameter.ndim == 2 else 1 + 0.3 * noise)
