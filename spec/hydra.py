"""Hydra: heads that know what was guessed before them (Ankner et al., arXiv 2402.05109).

Head k guesses the token k + 1 places after the pending one from [h; e_0; …; e_k]: the target's last hidden state, and
the embeddings of the pending token and of the k guesses after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paceline.kernels.backend import Guessing
from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation, Indices, Packed

from .draft_batch import fed
from .guess_tree import Floats, GuessTree
from .heads import FinalNorm, Heads, HiddenDrafter
from .spine import Spine, Step
from .tree_drafter import ranked


class HydraModel:
    """embed: the target's table, [V, H]."""

    def __init__(self, heads: Heads, norm: FinalNorm, embed: Packed) -> None:
        self.heads = heads
        self.norm = norm
        self._table = embed
        self._embed = heads.ops.compile(self._embed_pass)
        self._passes = [heads.ops.compile(self._head_pass(head)) for head in range(len(heads))]

    def spine(self) -> Spine | None:
        """None where passes cannot go on from their own guesses."""
        heads = self.heads
        if heads.ops.guessing is None:
            return None
        return Spine(
            heads.ops,
            heads.ops.guessing,
            self._level(heads.ops.guessing),
            vocabulary=heads.vocabulary,
            levels=len(heads),
            width=len(self.norm.weight),
            passed=lambda above, embedded: np.concatenate((above, embedded)),
        )

    def _level(self, guessing: Guessing) -> Step:
        def level(head: int, ids: Indices, above: Activation) -> tuple[Activation, Activation, Activation]:
            embedded = self.heads.ops.embed(self._table, ids)
            features = guessing.join((above, embedded))
            return self.heads.out(head, self.heads.blocks(head, features)), features, embedded

        return level

    def _embed_pass(self, batch: Any, cache: Cache) -> tuple[Activation]:
        return (self.heads.ops.embed(self._table, batch.ids),)

    def _head_pass(self, head: int) -> Callable[[Any, Cache], tuple[Activation]]:
        def run(batch: Any, cache: Cache) -> tuple[Activation]:
            return (self.heads.out(head, self.heads.blocks(head, self.heads.ops.feed(batch.features))),)

        return run

    def embedded(self, ids: Sequence[int]) -> Floats:
        """[R, H], valid until the next call."""
        return self.heads.ops.host(self._embed(fed(np.zeros((len(ids), 0), np.float32), ids), None)[0])

    def logits(self, head: int, features: Floats) -> Activation:
        """features [R, (head + 2) H] -> [R, N]"""
        return self._passes[head](fed(features), None)[0]


class HydraDrafter(HiddenDrafter):
    """token_ms: see `HiddenDrafter`."""

    name = "hydra"

    def __init__(self, model: HydraModel, *, token_ms: Callable[[], float]) -> None:
        super().__init__(token_ms, model.spine())
        self._model = model
        self.deepest = len(model.heads)

    def _first(self, hidden: Floats) -> Floats:
        return self._model.norm(hidden)

    def _look(self, chosen: Sequence[tuple[GuessTree, list[int]]]) -> None:
        """One pass per level, as each has a head of its own."""
        nodes = [(tree, node) for tree, best in chosen for node in best]
        for head in sorted({tree.depths[node] for tree, node in nodes}):
            level = [(tree, node) for tree, node in nodes if tree.depths[node] == head]
            self._enter(level, [tree.above(node) for tree, node in level], [tree.tokens[node] for tree, node in level])

    def _enter(self, nodes: Sequence[tuple[GuessTree, int]], above: Sequence[Floats], ids: Sequence[int]) -> None:
        """above: M times [(head + 1) H], of nodes of one level."""
        tree, node = nodes[0]
        head = tree.depths[node]
        features = np.concatenate([np.stack(above), self._model.embedded(ids)], axis=1)
        logits = self._model.logits(head, features)
        heads = self._model.heads
        tokens, estimates = ranked(heads.ops, logits, heads.vocabulary, nodes)
        for i, (tree, node) in enumerate(nodes):
            tree.look_into(node, features[i], tokens[i], estimates[i])
