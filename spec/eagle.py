"""The feature-conditioned drafter's pass: one decoder layer over the target's hidden states (EAGLE-3).

At position t it reads the target's hidden states of token t, projected to one vector, and the embedding of token t + 1,
and guesses token t + 2. Its own output stands in for hidden states that do not exist yet (Li et al., arXiv 2503.01840).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache import Cache, CacheShape
from paceline.kernels.linear import Activation, ArrayMatrix, Packed
from paceline.kernels.rope_store import Rotation

from .guess_tree import Floats
from .packing import Packing

ARCHITECTURE = "LlamaForCausalLMEagle3"  # what published configs call it
FORM = "q4"  # as many guesses are accepted as with 8 bits, and a pass reads half: 0.35 against 0.7 ms


@dataclass(frozen=True, slots=True, kw_only=True)
class EagleWeights:
    """As the file has them. H hidden, E embedding size, I intermediate, D head size, N guessable tokens.

    taps: after how many of the target's layers each hidden state is taken. vocabulary: the target's id of each of the N
    tokens, ascending. embed and head: None where the target's own rows serve.
    """

    taps: tuple[int, ...]
    projections: tuple[Floats, ...]  # [H, target's hidden size], one per tap: their products are summed
    embed_norm: Floats  # [E]
    hidden_norm: Floats  # [H]
    qkv_embed: Floats  # [(Hq + 2 Hkv) D, E]
    qkv_hidden: Floats  # [(Hq + 2 Hkv) D, H]
    out: Floats  # [H, Hq D]
    ffn_norm: Floats  # [H]
    gate_up: Floats  # [2 I, H]
    down: Floats  # [H, I]
    norm: Floats  # [H]
    eps: float
    kv_heads: int
    head_dim: int
    rope_theta: float
    vocabulary: NDArray[np.int64]  # [N]
    embed: Floats | None = None  # [V, E]
    head: Floats | None = None  # [N, H]

    @property
    def cache_shape(self) -> CacheShape:
        return CacheShape(1, self.kv_heads, self.head_dim)


class EagleModel:
    """The weights packed, and the pass that reads them: features [R, H] and ids in, guesses and hidden states out.

    embed: the target's table; head: its rows of the guessable tokens [N, H], used where the file has none of its own.
    """

    def __init__(self, weights: EagleWeights, ops: Ops, rotation: Rotation, embed: Packed, head: Floats) -> None:
        packing = Packing(ops, FORM, weights.eps)
        pack, norm = packing.matrix, packing.norm
        self.vocabulary = weights.vocabulary
        self._ops = ops
        self._rotation = rotation
        self._embed = embed if weights.embed is None else ops.pack_table(ArrayMatrix(weights.embed), form=FORM)
        self._head = pack(head if weights.head is None else weights.head)
        self._qkv_embed = pack(weights.qkv_embed)
        self._qkv_hidden = pack(weights.qkv_hidden)
        self._out = pack(weights.out)
        self._gate_up = pack(weights.gate_up, gate=True)
        self._down = pack(weights.down)
        self._embed_norm = norm(weights.embed_norm)
        self._hidden_norm = norm(weights.hidden_norm)
        self._ffn_norm = norm(weights.ffn_norm)
        self._norm = norm(weights.norm)
        self.compile = ops.compile
        self.forward = ops.compile(self.body)

    def body(self, batch: Any, cache: Cache) -> tuple[Activation, Activation]:
        """(logits [M, N], hidden [M, H]); batch.ids are the tokens after those the features belong to."""
        ops = self._ops
        prepared = ops.prepare(batch.layout)
        features = ops.feed(batch.features)
        embedded = ops.linear(ops.embed(self._embed, batch.ids), self._qkv_embed, norm=self._embed_norm)
        qkv = ops.linear(features, self._qkv_hidden, norm=self._hidden_norm, residual=embedded)
        q = ops.rope_store(qkv, self._rotation, batch.positions, batch.slots, cache, 0)
        x = ops.linear(ops.tree_attention(q, cache, 0, prepared), self._out, residual=features)
        x = ops.linear(ops.linear(x, self._gate_up, norm=self._ffn_norm, gate=True), self._down, residual=x)
        hidden = ops.select(x, batch.sampled)
        return ops.linear(hidden, self._head, norm=self._norm), hidden
