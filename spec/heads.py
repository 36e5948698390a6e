"""Heads on the target's last hidden state: residual blocks, then a product with rows of its head.

A block is x + silu(W x + b) (Medusa: Cai et al., arXiv 2401.10774). One that reads more than the hidden state has a
product in place of the bare x (Hydra: Ankner et al., arXiv 2402.05109).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.linear import Activation, ArrayMatrix, Packed
from paceline.kernels.rank import Vocabulary

from .guess_tree import Floats, GuessTree
from .proposer import Ask, Verdict
from .spine import Spine
from .tree_drafter import TreeDrafter

MEDUSA, HYDRA = "PacelineMedusa", "PacelineHydra"  # what our own configs call them
FORM = "q8"  # what weights are packed in


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """skip: what x is multiplied with before it is added, None where it is added as it is (then W is H)."""

    weight: Floats  # [H, W]
    bias: Floats  # [H]
    skip: Floats | None = None  # [H, W]
    skip_bias: Floats | None = None  # [H]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadsWeights:
    """K heads as the file has them. vocabulary: the target's id of each of the N guessable tokens, ascending; None for
    all. outs: the last product of each head; None where the target's own rows serve for all of them.
    """

    heads: tuple[tuple[Block, ...], ...]
    vocabulary: Vocabulary | None = None  # [N]
    outs: tuple[Floats, ...] | None = None  # [N, H] each


@dataclass(frozen=True, slots=True)
class FinalNorm:
    """The target's, on the host: heads read the hidden state after it."""

    weight: Floats  # [H]
    eps: float

    def __call__(self, hidden: Floats) -> Floats:
        """[R, H] -> [R, H] (RMS norm, Zhang & Sennrich, arXiv 1910.07467)."""
        scale = 1.0 / np.sqrt(np.square(hidden).mean(axis=-1, keepdims=True) + self.eps)
        return np.asarray(hidden * scale * self.weight, np.float32)


class Heads:
    """The weights packed, for use in passes.

    rows: the target's head [N, H] of the guessable tokens, packed; None where each head has one of its own.
    """

    def __init__(self, weights: HeadsWeights, ops: Ops, rows: Packed | None) -> None:
        def pack(values: Floats, bias: Floats | None = None) -> Packed:
            return ops.pack(ArrayMatrix(values), bias, form=FORM)

        self.ops = ops
        self.vocabulary = weights.vocabulary
        self._blocks = [
            [
                (pack(block.weight, block.bias), None if block.skip is None else pack(block.skip, block.skip_bias))
                for block in blocks
            ]
            for blocks in weights.heads
        ]
        if weights.outs is not None:
            self._outs = [pack(values) for values in weights.outs]
        elif rows is not None:
            self._outs = [rows]
        else:
            raise ValueError("heads need rows of the target's where they have none of their own")

    def __len__(self) -> int:
        return len(self._blocks)

    @property
    def shares_rows(self) -> bool:
        return len(self._outs) < len(self)

    def blocks(self, head: int, x: Activation) -> Activation:
        """x [R, W] -> [R, H]"""
        for weight, skip in self._blocks[head]:
            straight = x if skip is None else self.ops.linear(x, skip)
            x = self.ops.linear(x, weight, silu=True, residual=straight)
        return x

    def out(self, head: int, x: Activation) -> Activation:
        """[R, H] -> logits [R, N]"""
        return self.ops.linear(x, self._outs[0 if len(self._outs) == 1 else head])


class LastHidden:
    """Of each sequence, the hidden state the pending token was chosen from."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[int, NDArray[np.float32]]] = {}  # tokens up to and with its own, the state [H]

    def ready(self, asks: Sequence[Ask]) -> dict[int, Floats]:
        """By place among the asks, in their order: [H], before the final norm; without those that have not come."""
        found = {}
        for i, ask in enumerate(asks):
            covered, hidden = self._held.get(ask.seq_id, (0, None))
            if hidden is not None and covered == len(ask.tokens) - 1:
                found[i] = hidden
        return found

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            if verdict.hidden is not None:
                self._held[verdict.seq_id] = verdict.start + len(verdict.path), verdict.hidden

    def forget(self, seq_id: str) -> None:
        self._held.pop(seq_id, None)


class HiddenDrafter(TreeDrafter):
    """Its first pass reads the target's last hidden states, every later one what the pass above it passed on.

    token_ms: what a token costs without this drafter, in milliseconds: another pass must promise more. spine: its first
    pass and those below the best guesses in one; None where each is a pass of its own.
    """

    needs_hidden = True

    def __init__(self, token_ms: Callable[[], float], spine: Spine | None) -> None:
        super().__init__(token_ms)
        self._hidden = LastHidden()
        self._spine = spine

    def _first(self, hidden: Floats) -> Floats:
        """The target's hidden states [S, H], as the first pass reads them."""
        return hidden

    @abstractmethod
    def _enter(self, nodes: Sequence[tuple[GuessTree, int]], above: Sequence[Floats], ids: Sequence[int]) -> None:
        """Look into nodes, all pending tokens or none. above: of each what its pass reads; ids: their tokens."""

    def _start(self, asks: Sequence[Ask]) -> dict[int, GuessTree]:
        ready = self._hidden.ready(asks)
        trees = {i: GuessTree(asks[i]) for i in ready}
        if ready:
            above, ids = self._first(np.stack(list(ready.values()))), [asks[i].tokens[-1] for i in ready]
            if self._spine is None:
                self._enter([(tree, 0) for tree in trees.values()], list(above), ids)
            else:
                self._spine.grow(list(trees.values()), above, ids)
        return trees

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        self._hidden.observe(verdicts)

    def forget(self, seq_id: str) -> None:
        self._hidden.forget(seq_id)
