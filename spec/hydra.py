"""Hydra: heads that know what was guessed before them (Ankner et al., arXiv 2402.05109).

Head k guesses the token k + 1 places after the pending one from [h; e_0; …; e_k]: the target's last hidden state, and
the embeddings of the pending token and of the k guesses after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from paceline.kernels.kv_cache import Cache
from paceline.kernels.linear import Activation, Packed

from .draft_batch import fed
from .guess_tree import Floats, GuessTree
from .heads import FinalNorm, Heads, LastHidden
from .proposer import Ask, Verdict
from .tree_drafter import Start, TreeDrafter, ranked


class HydraModel:
    """embed: the target's table, [V, H]."""

    def __init__(self, heads: Heads, norm: FinalNorm, embed: Packed) -> None:
        self.heads = heads
        self.norm = norm
        self._table = embed
        self._embed = heads.ops.compile(self._embed_pass)
        self._passes = [heads.ops.compile(self._head_pass(head)) for head in range(len(heads))]

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


class HydraDrafter(TreeDrafter):
    """token_ms: what a token costs without this drafter, in milliseconds: another pass must promise more."""

    name = "hydra"
    needs_hidden = True

    def __init__(self, model: HydraModel, *, token_ms: Callable[[], float]) -> None:
        super().__init__(token_ms)
        self._model = model
        self._hidden = LastHidden()
        self.deepest = len(model.heads)

    def _start(self, asks: Sequence[Ask]) -> Start:
        ready = {i: hidden for i, ask in enumerate(asks) if (hidden := self._hidden.of(ask)) is not None}
        trees = {i: GuessTree(asks[i]) for i in ready}
        if ready:
            hidden = self._model.norm(np.stack(list(ready.values())))
            self._enter([(tree, 0) for tree in trees.values()], hidden, [asks[i].tokens[-1] for i in ready])
        return Start(trees)

    def _look(self, chosen: Sequence[tuple[GuessTree, list[int]]]) -> None:
        """One pass per level, as each has a head of its own."""
        nodes = [(tree, node) for tree, best in chosen for node in best]
        for head in sorted({tree.depths[node] for tree, node in nodes}):
            level = [(tree, node) for tree, node in nodes if tree.depths[node] == head]
            above = np.stack([tree.above(node) for tree, node in level])
            self._enter(level, above, [tree.tokens[node] for tree, node in level])

    def _enter(self, nodes: Sequence[tuple[GuessTree, int]], above: Floats, ids: Sequence[int]) -> None:
        """above [M, (head + 1) H]: what the pass above these nodes, all of one level, read."""
        tree, node = nodes[0]
        features = np.concatenate([above, self._model.embedded(ids)], axis=1)
        logits = self._model.logits(tree.depths[node], features)
        heads = self._model.heads
        tokens, estimates = ranked(heads.ops, logits, heads.vocabulary, nodes)
        for i, (tree, node) in enumerate(nodes):
            tree.look_into(node, features[i], tokens[i], estimates[i])

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        self._hidden.observe(verdicts)

    def forget(self, seq_id: str) -> None:
        self._hidden.forget(seq_id)
