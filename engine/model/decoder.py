"""The decoder every supported family is an instance of: one pass over the rows of a step, driven by the config."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache import Cache, CacheShape
from paceline.kernels.linear import Activation, Floats, MakeConstant, Matrix, Norm, Packed
from paceline.kernels.rope_store import Rotation

from .config import ModelConfig, RopeConfig
from .rope import rope_inv_freq
from .weights import LayerWeights, ModelWeights


@dataclass(frozen=True, slots=True)
class _Layer:
    attn_norm: Norm
    qkv: Packed
    q_norm: Norm | None
    k_norm: Norm | None
    out: Packed
    ffn_norm: Norm
    gate_up: Packed
    down: Packed


def cache_shape(config: ModelConfig) -> CacheShape:
    """What a cache for this model looks like."""
    return CacheShape(config.num_layers, config.num_kv_heads, config.head_dim)


def rotation(rope: RopeConfig, head_dim: int, positions: int, constant: MakeConstant) -> Rotation:
    """Tables for positions 0 … positions - 1; angles in float64, so that far positions keep their phase."""
    inverse, scale = rope_inv_freq(rope, head_dim)
    angles = np.outer(np.arange(positions, dtype=np.float64), inverse)
    cos, sin = ((turn(angles) * scale).astype(np.float32) for turn in (np.cos, np.sin))
    return Rotation(constant(cos), constant(sin))


class Decoder:
    """Llama, Mistral, Qwen2 and Qwen3: RMS norm, rotary grouped-query attention, SwiGLU.

    Matrices are read from the checkpoint as they are packed, one at a time: loading never holds the model twice.
    `forward(batch, cache)` computes every row, writes its keys and values to its slot, and returns (logits [M, V],
    hidden [M, H] before the final norm, *features): the first two of the sampled rows, features of all R rows.

    features: each entry describes one of them, [R, W], for a drafter that reads what the model sees: the sum over
    {n: weight [W, H]} of linear(x after n layers, weight), n from 0, the embeddings, to the number of layers, without
    a norm (Li et al., EAGLE-3, arXiv 2503.01840). They change no bit of the logits. Raises ValueError for an n that
    is not there.

    form: what to keep each matrix in; None leaves that to the backend, whose store holds one such model.
    """

    def __init__(
        self,
        config: ModelConfig,
        weights: ModelWeights,
        ops: Ops,
        *,
        context_length: int,
        features: Sequence[Mapping[int, Packed]] = (),
        form: Callable[[Matrix], str] | None = None,
    ) -> None:
        for taps in features:
            if not taps or not all(0 <= layers <= config.num_layers for layers in taps):
                raise ValueError(f"features are taken after 0 to {config.num_layers} layers, not after {list(taps)}")
        self.config = config
        self._ops = ops
        self._norm = self._norm_of(weights.norm)
        self._form = form
        self._embed = ops.pack_table(weights.embed, form=form and form(weights.embed))
        tied = weights.lm_head is weights.embed
        self._lm_head = ops.tied_head(self._embed) if tied else self._packed(weights.lm_head)
        self._layers = [self._pack(layer) for layer in weights.layers]
        self._features = features
        self._rotation = rotation(config.rope, config.head_dim, context_length, ops.constant)
        self.compile = ops.compile
        self.forward = ops.compile(self.body)

    @property
    def embed_table(self) -> Packed:
        """The packed table [V, H] for `embed`."""
        return self._embed

    @property
    def head(self) -> Packed:
        """The packed head [V, H] for `linear`."""
        return self._lm_head

    def _pack(self, layer: LayerWeights) -> _Layer:
        pack, norm = self._packed, self._norm_of
        return _Layer(
            attn_norm=norm(layer.attn_norm),
            qkv=pack(layer.qkv, layer.qkv_bias),
            q_norm=None if layer.q_norm is None else norm(layer.q_norm),
            k_norm=None if layer.k_norm is None else norm(layer.k_norm),
            out=pack(layer.out),
            ffn_norm=norm(layer.ffn_norm),
            gate_up=pack(layer.gate_up, gate=True),
            down=pack(layer.down),
        )

    def _packed(self, matrix: Matrix, bias: Floats | None = None, *, gate: bool = False) -> Packed:
        return self._ops.pack(matrix, bias, gate=gate, form=self._form and self._form(matrix))

    def _norm_of(self, weight: Floats) -> Norm:
        return Norm(self._ops.constant(weight), self.config.rms_norm_eps)

    def body(self, batch: Any, cache: Cache) -> tuple[Activation, ...]:
        """What `forward` computes. batch: the fields of a `Batch` as the backend wants them."""
        ops = self._ops
        prepared = ops.prepare(batch.layout)
        x = ops.embed(self._embed, batch.ids)
        features = self._tap([None] * len(self._features), x, 0)
        for index, layer in enumerate(self._layers):
            qkv = ops.linear(x, layer.qkv, norm=layer.attn_norm)
            q = ops.rope_store(
                qkv,
                self._rotation,
                batch.positions,
                batch.slots,
                cache,
                index,
                q_norm=layer.q_norm,
                k_norm=layer.k_norm,
            )
            x = ops.linear(ops.tree_attention(q, cache, index, prepared), layer.out, residual=x)
            x = ops.linear(ops.linear(x, layer.gate_up, norm=layer.ffn_norm, gate=True), layer.down, residual=x)
            features = self._tap(features, x, index + 1)
        hidden = ops.select(x, batch.sampled)
        return (ops.linear(hidden, self._lm_head, norm=self._norm, wide=True), hidden, *features)

    def _tap(self, sums: list[Activation], x: Activation, layers: int) -> list[Activation]:
        """The features' sums so far, [R, W] or None each, with what is taken from x after so many layers."""
        return [
            self._ops.linear(x, taps[layers], residual=total) if layers in taps else total
            for total, taps in zip(sums, self._features, strict=True)
        ]
