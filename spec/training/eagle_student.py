"""The feature-conditioned layer as a student: it is unrolled over several guesses in a row, as it is used.

EAGLE-3's training-time test (Li et al., arXiv 2503.01840, section 3.2): from the second guess on, the layer reads its
own output where it has no hidden states of the target's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..eagle import ARCHITECTURE
from .eagle import EagleLayer
from .export import d2t
from .layers import LayerShape, named
from .student import Examples
from .target import Target

_COPIED = ("self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "post_attention_layernorm")


class EagleStudent:
    """Starts as a copy of the target's last layer that adds what the embedding says: it guesses at once, if badly."""

    def __init__(self, target: Target, taps: tuple[int, ...]) -> None:
        size = target.hidden_size
        self._taps = taps
        self._shape = LayerShape.of(target)
        self.module = EagleLayer(self._shape, len(taps))
        layer, start = self.module.midlayer, named(target.layer(target.layers - 1))
        with torch.no_grad():
            for name in ("q_proj", "k_proj", "v_proj"):
                weight = layer.self_attn.get_parameter(f"{name}.weight")
                weight[:, :size].normal_(0, 0.01)
                weight[:, size:] = start[f"self_attn.{name}.weight"]
            layer.hidden_norm.weight.copy_(start["input_layernorm.weight"])
            for name in _COPIED:
                layer.get_parameter(f"{name}.weight").copy_(start[f"{name}.weight"])
            self.module.norm.weight.copy_(torch.from_numpy(target.norm))
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
            hidden = self.module.guess(hidden, embedded, self._shape.turn(places, k, device), past, later)
            yield hidden

    def finish(self, rows: Tensor) -> Tensor:
        out: Tensor = self.module.norm(rows)
        return out

    def config(self) -> Mapping[str, object]:
        return {
            "architectures": [ARCHITECTURE],
            "model_type": "llama",
            **self._shape.config(layers=1),
            "target_hidden_size": self._shape.hidden,
            "taps": list(self._taps),
        }

    def extras(self, vocabulary: NDArray[np.int64]) -> Mapping[str, Tensor]:
        return d2t(vocabulary)
