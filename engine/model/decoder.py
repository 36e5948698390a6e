"""The decoder every supported family is an instance of: one pass over the rows of a step, driven by the config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.kernels.backend import Ops
from paceline.kernels.kv_cache import Cache, CacheShape
from paceline.kernels.linear import Activation, Floats, MakeConstant, Norm, Packed
from paceline.kernels.rope_store import Rotation

from .config import ModelConfig
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


def rotation(config: ModelConfig, positions: int, constant: MakeConstant) -> Rotation:
    """Tables for positions 0 … positions - 1; angles in float64, so that far positions keep their phase."""
    inverse, scale = rope_inv_freq(config.rope, config.head_dim)
    angles = np.outer(np.arange(positions, dtype=np.float64), inverse)
    cos, sin = ((turn(angles) * scale).astype(np.float32) for turn in (np.cos, np.sin))
    return Rotation(constant(cos), constant(sin))


class Decoder:
    """Llama, Mistral, Qwen2 and Qwen3: RMS norm, rotary grouped-query attention, SwiGLU.

    Matrices are read from the checkpoint as they are packed, one at a time: loading never holds the model twice.
    `forward(batch, cache)` computes every row, writes its keys and values to its slot, and returns (logits [M, V],
    hidden [M, H] before the final norm) of the sampled rows.
    """

    def __init__(self, config: ModelConfig, weights: ModelWeights, ops: Ops, *, context_length: int) -> None:
        self.config = config
        self._ops = ops
        self._norm = self._norm_of(weights.norm)
        self._embed = ops.pack_table(weights.embed)
        tied = weights.lm_head is weights.embed
        self._lm_head = ops.tied_head(self._embed) if tied else ops.pack(weights.lm_head)
        self._layers = [self._pack(layer) for layer in weights.layers]
        self._rotation = rotation(config, context_length, ops.constant)
        self.forward = ops.compile(self._pass)

    def _pack(self, layer: LayerWeights) -> _Layer:
        pack, norm = self._ops.pack, self._norm_of
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

    def _norm_of(self, weight: Floats) -> Norm:
        return Norm(self._ops.constant(weight), self.config.rms_norm_eps)

    def _pass(self, batch: Any, cache: Cache) -> tuple[Activation, Activation]:
        """batch: the fields of a `Batch` as the backend wants them."""
        ops = self._ops
        prepared = ops.prepare(batch.layout)
        x = ops.embed(self._embed, batch.ids)
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
        hidden = ops.select(x, batch.sampled)
        return ops.linear(hidden, self._lm_head, norm=self._norm), hidden
