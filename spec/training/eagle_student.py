"""The feature-conditioned layer as a student: it is unrolled over several guesses in a row, as it is used.

EAGLE-3's training-time test (Li et al., arXiv 2503.01840, section 3.2): from the second guess on, the layer reads its
own output where it has no hidden states of the target's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from ..eagle import ARCHITECTURE
from .eagle import EagleLayer, LayerShape
from .student import Examples
from .target import Target


class EagleStudent:
    """Starts as a copy of the target's last layer that adds what the embedding says: it guesses at once, if badly."""

    def __init__(self, target: Target, taps: tuple[int, ...]) -> None:
        last, size = target.last, target.hidden_size
        self._target = target
        self._taps = taps
        self.module = EagleLayer(
            LayerShape(
                hidden=size,
                intermediate=len(last.gate),
                heads=target.heads,
                kv_heads=target.kv_heads,
                head_dim=target.head_dim,
                taps=len(taps),
                eps=target.eps,
            )
        )
        self._frequencies = target.rope_theta ** (-np.arange(0, target.head_dim, 2) / target.head_dim)
        layer = self.module.midlayer
        attention, mlp = layer.self_attn, layer.mlp
        with torch.no_grad():
            for linear, rows in ((attention.q_proj, last.q), (attention.k_proj, last.k), (attention.v_proj, last.v)):
                linear.weight[:, :size].normal_(0, 0.01)
                linear.weight[:, size:] = torch.from_numpy(rows)
            for parameter, values in (
                (attention.o_proj.weight, last.out),
                (mlp.gate_proj.weight, last.gate),
                (mlp.up_proj.weight, last.up),
                (mlp.down_proj.weight, last.down),
                (layer.hidden_norm.weight, last.attn_norm),
                (layer.post_attention_layernorm.weight, last.ffn_norm),
                (self.module.norm.weight, target.norm),
            ):
                parameter.copy_(torch.from_numpy(values))
            self.module.fc.weight.normal_(0, 0.002)
            self.module.fc.weight[:, -size:] += torch.eye(size)

    def guesses(self, examples: Examples, depth: int) -> Iterator[Tensor]:
        """Guess k at index t stands at position t + k, and sees the target's hidden states of tokens 0 … t."""
        places = examples.places
        device = examples.embedded.device
        later = torch.ones(places, places, dtype=torch.bool, device=device).triu(1)
        past: list[tuple[Tensor, Tensor]] = []
        hidden = self.module.features(examples.hidden[:, :places])
        for k in range(depth):
            embedded = examples.ahead(examples.embedded, 1 + k)
            hidden = self.module.guess(hidden, embedded, self._turn(places, k, device), past, later)
            yield hidden

    def _turn(self, places: int, shift: int, device: torch.device) -> tuple[Tensor, Tensor]:
        angles = np.outer(np.arange(places) + shift, self._frequencies)
        cos, sin = (torch.from_numpy(f(angles).astype(np.float32)).to(device) for f in (np.cos, np.sin))
        return cos, sin

    def finish(self, rows: Tensor) -> Tensor:
        out: Tensor = self.module.norm(rows)
        return out

    def config(self) -> Mapping[str, object]:
        shape = self.module.shape
        return {
            "architectures": [ARCHITECTURE],
            "model_type": "llama",
            "hidden_size": shape.hidden,
            "target_hidden_size": shape.hidden,
            "intermediate_size": shape.intermediate,
            "num_hidden_layers": 1,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads,
            "head_dim": shape.head_dim,
            "rms_norm_eps": shape.eps,
            "rope_theta": self._target.rope_theta,
            "hidden_act": "silu",
            "taps": list(self._taps),
        }
