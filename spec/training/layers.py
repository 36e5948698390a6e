"""What decoder layers are made of, for drafters that have some; parameters are named as in Llama checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .target import LayerArrays, Target

Turn = tuple[Tensor, Tensor]  # cos and sin [L, D / 2]


@dataclass(frozen=True, slots=True)
class LayerShape:
    """H hidden, I intermediate, Hq query heads, Hkv key heads, D head size."""

    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    rope_theta: float

    @classmethod
    def of(cls, target: Target) -> LayerShape:
        return cls(
            hidden=target.hidden_size,
            intermediate=target.intermediate,
            heads=target.heads,
            kv_heads=target.kv_heads,
            head_dim=target.head_dim,
            eps=target.eps,
            rope_theta=target.rope_theta,
        )

    def config(self, layers: int) -> dict[str, object]:
        """As config.json says it."""
        return {
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "rms_norm_eps": self.eps,
            "rope_theta": self.rope_theta,
            "hidden_act": "silu",
        }

    def turn(self, length: int, first: int, device: torch.device) -> Turn:
        """Of the positions first … first + length - 1."""
        frequencies = self.rope_theta ** (-np.arange(0, self.head_dim, 2) / self.head_dim)
        angles = np.outer(np.arange(length) + first, frequencies)
        cos, sin = (torch.from_numpy(f(angles).astype(np.float32)).to(device) for f in (np.cos, np.sin))
        return cos, sin


class Norm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self._eps)


class MLP(nn.Module):
    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


def rotate(x: Tensor, turn: Turn) -> Tensor:
    """x: [B, L, heads, D]. Pairs are (i, i + D / 2)."""
    cos, sin = (part[None, :, None] for part in turn)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def named(layer: LayerArrays) -> dict[str, Tensor]:
    """A layer's arrays by the names of the parameters that hold them."""
    attention = {"q_proj": layer.q, "k_proj": layer.k, "v_proj": layer.v, "o_proj": layer.out}
    arrays = {f"self_attn.{name}.weight": values for name, values in attention.items()}
    if layer.qkv_bias is not None:
        ends = np.cumsum([len(layer.q), len(layer.k)])
        for name, values in zip("qkv", np.split(layer.qkv_bias, ends), strict=True):
            arrays[f"self_attn.{name}_proj.bias"] = values
    for name, weight in (("q_norm", layer.q_norm), ("k_norm", layer.k_norm)):
        if weight is not None:
            arrays[f"self_attn.{name}.weight"] = weight
    arrays |= {
        "mlp.gate_proj.weight": layer.gate,
        "mlp.up_proj.weight": layer.up,
        "mlp.down_proj.weight": layer.down,
        "input_layernorm.weight": layer.attn_norm,
        "post_attention_layernorm.weight": layer.ffn_norm,
    }
    return {name: torch.from_numpy(values) for name, values in arrays.items()}
