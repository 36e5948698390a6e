"""The recurrent drafter as a student: a state that begins as the target's last and is moved on by each guessed token.

Recurrent Drafter (Zhang et al., arXiv 2403.09919), with an MLP of the target's shape for the step. Like EAGLE's layer
it is unrolled over several guesses in a row, each reading its own state of the guess before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..recurrent import ARCHITECTURE
from .export import d2t
from .layers import MLP, LayerShape, Norm, named
from .student import Examples
from .target import Target


class _Step(nn.Module):
    """norm is for the guess; the state that is carried on goes without."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.embed_norm = Norm(shape.hidden, shape.eps)
        self.hidden_norm = Norm(shape.hidden, shape.eps)
        self.mix = nn.Linear(2 * shape.hidden, shape.hidden, bias=False)
        self.mlp_norm = Norm(shape.hidden, shape.eps)
        self.mlp = MLP(shape)
        self.norm = Norm(shape.hidden, shape.eps)

    def forward(self, hidden: Tensor, embedded: Tensor) -> Tensor:
        """hidden: [M, H], the target's or the guess before; embedded: [M, H] of the next tokens -> [M, H]."""
        x = hidden + self.mix(torch.cat([self.embed_norm(embedded), self.hidden_norm(hidden)], dim=-1))
        out: Tensor = x + self.mlp(self.mlp_norm(x))
        return out


class RecurrentStudent:
    """Starts as the MLP of the target's last layer, over a state that the embedding hardly moves yet."""

    def __init__(self, target: Target) -> None:
        self._shape = LayerShape.of(target)
        self.module = _Step(self._shape)
        start = named(target.layer(target.layers - 1))
        with torch.no_grad():
            self.module.mix.weight.normal_(0, 0.01)
            for name, of_layer in (
                ("hidden_norm", "input_layernorm"),
                ("mlp_norm", "post_attention_layernorm"),
                ("mlp.gate_proj", "mlp.gate_proj"),
                ("mlp.up_proj", "mlp.up_proj"),
                ("mlp.down_proj", "mlp.down_proj"),
            ):
                self.module.get_parameter(f"{name}.weight").copy_(start[f"{of_layer}.weight"])
            self.module.norm.weight.copy_(torch.from_numpy(target.norm))

    def guesses(self, examples: Examples, depth: int) -> Iterator[Tensor]:
        # A place is of no use to others: only those where a guess is of an answer are computed, the rest stays zero.
        used = torch.stack([examples.ahead(examples.answers, 2 + k) for k in range(depth)]).any(0)
        hidden = examples.hidden[:, : examples.places, -1][used]
        for k in range(depth):
            hidden = self.module(hidden, examples.ahead(examples.embedded, 1 + k)[used])
            yield hidden.new_zeros(*used.shape, hidden.shape[-1]).masked_scatter(used[..., None], hidden)

    def finish(self, rows: Tensor) -> Tensor:
        out: Tensor = self.module.norm(rows)
        return out

    def config(self) -> Mapping[str, object]:
        return {
            "architectures": [ARCHITECTURE],
            "hidden_size": self._shape.hidden,
            "intermediate_size": self._shape.intermediate,
            "rms_norm_eps": self._shape.eps,
        }

    def extras(self, vocabulary: NDArray[np.int64]) -> Mapping[str, Tensor]:
        return d2t(vocabulary)
