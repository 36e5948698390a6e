"""The decoder every supported family is an instance of: one pass over the rows of a step, driven by the config."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from paceline.kernels.linear import Norm, PackedLinear
from paceline.kernels.rope_store import Rotation

from .rope import rope_inv_freq

if TYPE_CHECKING:
    from paceline.kernels.backend import Ops
    from paceline.kernels.kv_cache import KVCache
    from paceline.kernels.tree_attention import Layout

    from .config import ModelConfig
    from .weights import LayerWeights, ModelWeights


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of one step as tensors on the device; `layout` stays on the host."""

    ids: torch.Tensor  # [R] int64
    positions: torch.Tensor  # [R] int64
    slots: torch.Tensor  # [R] int64
    sampled: torch.Tensor  # [M] int64, rows whose next token is wanted
    layout: Layout


@dataclass(frozen=True, slots=True)
class _Layer:
    attn_norm: Norm
    qkv: PackedLinear
    q_norm: Norm | None
    k_norm: Norm | None
    out: PackedLinear
    ffn_norm: Norm
    gate_up: PackedLinear
    down: PackedLinear


def rotation(config: ModelConfig, positions: int, device: torch.device) -> Rotation:
    """Tables for positions 0 … positions - 1; angles in float64, so that far positions keep their phase."""
    inverse, scale = rope_inv_freq(config.rope, config.head_dim)
    angles = torch.outer(torch.arange(positions, dtype=torch.float64), torch.from_numpy(inverse))
    return Rotation(
        (angles.cos() * scale).float().to(device),
        (angles.sin() * scale).float().to(device),
    )


class Decoder:
    """Llama, Mistral, Qwen2 and Qwen3: RMS norm, rotary grouped-query attention, SwiGLU.

    Matrices are read from the checkpoint as they are packed, one at a time: loading never holds the model twice.
    """

    def __init__(self, config: ModelConfig, weights: ModelWeights, ops: Ops, *, context_length: int) -> None:
        self.config = config
        self._ops = ops
        self._norm = Norm(weights.norm, config.rms_norm_eps)
        self._embed = weights.embed.dense()
        self._lm_head = ops.pack(weights.lm_head)
        self._layers = [self._pack(layer) for layer in weights.layers]
        self._rotation = rotation(config, context_length, weights.norm.device)

    def _pack(self, layer: LayerWeights) -> _Layer:
        pack, eps = self._ops.pack, self.config.rms_norm_eps
        return _Layer(
            attn_norm=Norm(layer.attn_norm, eps),
            qkv=pack(layer.qkv, layer.qkv_bias),
            q_norm=None if layer.q_norm is None else Norm(layer.q_norm, eps),
            k_norm=None if layer.k_norm is None else Norm(layer.k_norm, eps),
            out=pack(layer.out),
            ffn_norm=Norm(layer.ffn_norm, eps),
            gate_up=pack(layer.gate_up, gate=True),
            down=pack(layer.down),
        )

    @torch.inference_mode()
    def forward(self, batch: Batch, cache: KVCache) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute every row, write its keys and values to its slot.

        Returns (logits [M, V] float32, hidden [M, H] before the final norm) of the sampled rows.
        """
        ops = self._ops
        prepared = ops.prepare(batch.layout, batch.ids.device)
        x = ops.embed(self._embed, batch.ids)
        for index, layer in enumerate(self._layers):
            k, v = cache.k[index], cache.v[index]
            qkv = ops.linear(x, layer.qkv, norm=layer.attn_norm)
            q = ops.rope_store(
                qkv, self._rotation, batch.positions, batch.slots, k, v, q_norm=layer.q_norm, k_norm=layer.k_norm
            )
            x = ops.linear(ops.tree_attention(q, k, v, prepared), layer.out, residual=x)
            x = ops.linear(ops.linear(x, layer.gate_up, norm=layer.ffn_norm, gate=True), layer.down, residual=x)
        hidden = x.index_select(0, batch.sampled)
        return ops.linear(hidden, self._lm_head, norm=self._norm).float(), hidden
