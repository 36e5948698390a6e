"""A recurrent drafter: a state that begins as the target's last hidden state, and is moved on by each token.

With the state h and the embedding e of the next token (in spirit Zhang et al., arXiv 2403.09919):

    x = h + mix [norm(e); norm(h)]
    x = x + down(silu(gate(norm(x))) * up(norm(x)))      the next state; head rows · norm(x) guess the token after e's

It is EAGLE's layer without attention: h has seen the whole text, and what earlier states add is not worth a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation, Indices, Packed

from .draft_batch import fed
from .guess_tree import Floats, GuessTree
from .heads import HiddenDrafter
from .packing import Packing
from .spine import Spine
from .tree_drafter import ranked

ARCHITECTURE = "PacelineRecurrent"  # what configs call it
FORM = "q4"  # a pass is bound by the bytes it reads: 3.2 MB for the shipped one


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrentWeights:
    """As the file has them. H: the target's hidden size, I intermediate, N guessable tokens.

    vocabulary: the target's id of each of the N tokens, ascending.
    """

    embed_norm: Floats  # [H]
    hidden_norm: Floats  # [H]
    mix: Floats  # [H, 2H], the embedding's columns first
    mlp_norm: Floats  # [H]
    gate_up: Floats  # [2 I, H]
    down: Floats  # [H, I]
    norm: Floats  # [H]
    eps: float
    vocabulary: NDArray[np.int64]  # [N]


class RecurrentModel:
    """embed: the target's table; head: its rows of the guessable tokens [N, H]."""

    def __init__(self, weights: RecurrentWeights, ops: Ops, embed: Packed, head: Floats) -> None:
        packing = Packing(ops, FORM, weights.eps)
        pack, norm = packing.matrix, packing.norm
        size = self._size = weights.mix.shape[0]
        self.ops = ops
        self.vocabulary = weights.vocabulary
        self._embed = embed
        self._head = pack(head)
        self._mix_embed = pack(np.ascontiguousarray(weights.mix[:, :size]))
        self._mix_hidden = pack(np.ascontiguousarray(weights.mix[:, size:]))
        self._gate_up = pack(weights.gate_up, gate=True)
        self._down = pack(weights.down)
        self._embed_norm, self._hidden_norm = norm(weights.embed_norm), norm(weights.hidden_norm)
        self._mlp_norm, self._norm = norm(weights.mlp_norm), norm(weights.norm)
        self._forward: Callable[[Any, Cache], tuple[Activation, ...]] = ops.compile(self._pass)

    def spine(self, levels: int) -> Spine | None:
        """None where passes cannot go on from their own guesses."""
        if self.ops.guessing is None:
            return None
        return Spine(
            self.ops, self.ops.guessing, self._level, vocabulary=self.vocabulary, levels=levels, width=self._size
        )

    def _pass(self, batch: Any, cache: Cache) -> tuple[Activation, Activation]:
        # Fed once to be added to, once to be read.
        return self._moved(batch.ids, self.ops.feed(batch.features), self.ops.feed(batch.features))

    def _level(self, level: int, ids: Indices, state: Activation) -> tuple[Activation, Activation, Activation]:
        logits, moved = self._moved(ids, state, state)
        return logits, moved, moved

    def _moved(self, ids: Indices, added: Activation, read: Activation) -> tuple[Activation, Activation]:
        """added, read: the states [R, H], twice. -> (logits [R, N], the next states [R, H])"""
        ops = self.ops
        x = ops.linear(ops.embed(self._embed, ids), self._mix_embed, norm=self._embed_norm, residual=added)
        x = ops.linear(read, self._mix_hidden, norm=self._hidden_norm, residual=x)
        x = ops.linear(ops.linear(x, self._gate_up, norm=self._mlp_norm, gate=True), self._down, residual=x)
        return ops.linear(x, self._head, norm=self._norm), x

    def step(self, states: Floats, ids: Sequence[int]) -> tuple[Activation, Floats]:
        """states [R, H], ids [R] -> (logits [R, N], valid until the next step; the next states [R, H])."""
        logits, moved = self._forward(fed(states, ids), None)[:2]
        return logits, self.ops.host(moved).copy()  # the next step writes where this one did


class RecurrentDrafter(HiddenDrafter):
    """token_ms: see `HiddenDrafter`."""

    name = "recurrent"

    def __init__(self, model: RecurrentModel, *, token_ms: Callable[[], float]) -> None:
        super().__init__(token_ms, model.spine(self.deepest))
        self._model = model

    def _look(self, chosen: Sequence[tuple[GuessTree, list[int]]]) -> None:
        nodes = [(tree, node) for tree, best in chosen for node in best]
        self._enter(nodes, [tree.above(node) for tree, node in nodes], [tree.tokens[node] for tree, node in nodes])

    def _enter(self, nodes: Sequence[tuple[GuessTree, int]], above: Sequence[Floats], ids: Sequence[int]) -> None:
        states = above[0][None] if len(above) == 1 else np.stack(above)
        logits, moved = self._model.step(states, ids)
        tokens, estimates = ranked(self._model.ops, logits, self._model.vocabulary, nodes)
        for i, (tree, node) in enumerate(nodes):
            tree.look_into(node, moved[i], tokens[i], estimates[i])
