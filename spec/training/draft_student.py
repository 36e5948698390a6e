"""A whole small model as a student: some of the target's own layers, which learn to do the work of all of them.

It starts as layers taken evenly from the target (Sanh et al., DistilBERT, arXiv 1910.01108) and learns the target's
distribution on texts of the target's own (Zhou et al., DistillSpec, arXiv 2310.08461). Embeddings and head are the
target's and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from .layers import MLP, LayerShape, Norm, Turn, named, rotate
from .student import Examples
from .target import Target


class _Attention(nn.Module):
    def __init__(self, shape: LayerShape, start: Mapping[str, Tensor]) -> None:
        super().__init__()
        self._shape = shape
        for part, heads in (("q", shape.heads), ("k", shape.kv_heads), ("v", shape.kv_heads)):
            bias = f"self_attn.{part}_proj.bias" in start
            self.add_module(f"{part}_proj", nn.Linear(shape.hidden, heads * shape.head_dim, bias=bias))
        self.o_proj = nn.Linear(shape.heads * shape.head_dim, shape.hidden, bias=False)
        self._normed = "self_attn.q_norm.weight" in start
        if self._normed:
            self.q_norm = Norm(shape.head_dim, shape.eps)
            self.k_norm = Norm(shape.head_dim, shape.eps)

    def forward(self, x: Tensor, turn: Turn) -> Tensor:
        """x: [B, L, H]."""
        q, k, v = (self.get_submodule(f"{part}_proj")(x).unflatten(-1, (-1, self._shape.head_dim)) for part in "qkv")
        if self._normed:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (part.transpose(1, 2) for part in (rotate(q, turn), rotate(k, turn), v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        out: Tensor = self.o_proj(seen.transpose(1, 2).flatten(-2))
        return out


class _Layer(nn.Module):
    def __init__(self, shape: LayerShape, start: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.input_layernorm = Norm(shape.hidden, shape.eps)
        self.self_attn = _Attention(shape, start)
        self.post_attention_layernorm = Norm(shape.hidden, shape.eps)
        self.mlp = MLP(shape)
        self.load_state_dict(start)

    def forward(self, x: Tensor, turn: Turn) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), turn)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class DraftStudent:
    """`layers` of the target's, the first and the last among them, without scaled rotation: texts to learn are short.

    Every guess is of the next token, with all tokens before it known: those of one index in a row are the outputs of
    the indices after it, and one pass gives them all.
    """

    def __init__(self, target: Target, layers: int) -> None:
        self._target = target
        self._shape = LayerShape.of(target)
        taken = [target.layers - 1] if layers == 1 else np.linspace(0, target.layers - 1, layers).round().astype(int)
        starts = [named(target.layer(int(index))) for index in taken]
        self._norm = Norm(target.hidden_size, target.eps)
        with torch.no_grad():
            self._norm.weight.copy_(torch.from_numpy(target.norm))
        self._layers = nn.ModuleList(_Layer(self._shape, start) for start in starts)
        self.module = nn.ModuleDict({"model": nn.ModuleDict({"layers": self._layers, "norm": self._norm})})
        self._family = "qwen3" if "self_attn.q_norm.weight" in starts[0] else "llama"
        if "self_attn.q_proj.bias" in starts[0]:
            self._family = "qwen2"

    def guesses(self, examples: Examples, depth: int) -> Iterator[Tensor]:
        x = examples.embedded
        turn = self._shape.turn(x.shape[1], 0, x.device)
        for layer in self._layers:
            x = layer(x, turn)
        for k in range(depth):
            yield examples.ahead(x, 1 + k)

    def finish(self, rows: Tensor) -> Tensor:
        out: Tensor = self._norm(rows)
        return out

    def config(self) -> Mapping[str, object]:
        return {
            "architectures": [f"{self._family.capitalize()}ForCausalLM"],
            "model_type": self._family,
            **self._shape.config(len(self._layers)),
            "max_position_embeddings": self._target.context_length,
            "tie_word_embeddings": self._target.head is self._target.embed,
        }

    def extras(self, vocabulary: NDArray[np.int64]) -> Mapping[str, Tensor]:
        tensors = {"model.embed_tokens.weight": torch.from_numpy(self._target.embed)}
        if self._target.head is not self._target.embed:
            tensors["lm_head.weight"] = torch.from_numpy(self._target.head)
        return tensors
