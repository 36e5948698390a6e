"""The layout of loaded weights, from a reader of numbered tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matrices import dense
from numpy.typing import NDArray
from tiny_models import FAMILIES, hf_config

from paceline.engine.errors import ModelError
from paceline.engine.model.config import ModelConfig, from_hf
from paceline.engine.model.weights import Matrix, ModelWeights, check_tensors, expected_tensors, load_weights


class Numbered:
    """Fills the i-th expected tensor with i; remembers what was asked for."""

    def __init__(self, config: ModelConfig) -> None:
        self.shapes = expected_tensors(config)
        self.numbers = {name: index + 1 for index, name in enumerate(self.shapes)}
        self.asked: list[str] = []

    def read(self, name: str, first: int, out: NDArray[np.float32]) -> None:
        assert first == 0
        assert out.shape == (self.shapes[name] if len(self.shapes[name]) == 2 else (*self.shapes[name], 1)), name
        out.fill(self.numbers[name])
        self.asked.append(name)

    def kind(self, name: str) -> str:
        return "F32"

    def raw(self, name: str) -> NDArray[np.uint8]:
        return np.full((self.shapes[name][0], 4 * self.shapes[name][1]), self.numbers[name], np.uint8)


def matrices_of(weights: ModelWeights) -> list[Matrix]:
    layers = [m for layer in weights.layers for m in (layer.qkv, layer.out, layer.gate_up, layer.down)]
    return [weights.embed, *layers, *([] if weights.lm_head is weights.embed else [weights.lm_head])]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_tensor_is_read_once_into_its_place(family: str) -> None:
    config = from_hf(hf_config(family))
    reader = Numbered(config)
    weights = load_weights(config, reader)
    read = [dense(matrix) for matrix in matrices_of(weights)]
    assert len(read) == 4 * config.num_layers + 1 + (not config.tie_embeddings)
    assert sorted(reader.asked) == sorted(reader.shapes)
    assert len(weights.layers) == config.num_layers
    layer, prefix = weights.layers[1], "model.layers.1."
    q, kv = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    expected = torch.cat(
        [
            torch.full((rows, config.hidden_size), float(reader.numbers[f"{prefix}self_attn.{part}_proj.weight"]))
            for part, rows in (("q", q), ("k", kv), ("v", kv))
        ]
    )
    assert torch.equal(dense(layer.qkv), expected)
    gate, up = dense(layer.gate_up).split(config.intermediate_size)
    assert gate.unique().tolist() == [reader.numbers[f"{prefix}mlp.gate_proj.weight"]]
    assert up.unique().tolist() == [reader.numbers[f"{prefix}mlp.up_proj.weight"]]
    assert (layer.qkv_bias is not None) == config.qkv_bias
    assert (layer.q_norm is not None) == (layer.k_norm is not None) == config.qk_norm
    assert (weights.lm_head is weights.embed) == config.tie_embeddings


def test_check_tensors() -> None:
    expected: dict[str, tuple[int, ...]] = {"a": (2, 3), "b": (4,)}
    check_tensors(expected, {"a": (2, 3), "b": (4,), "c": (1,)}, [], "here")
    with pytest.raises(ModelError, match="tensor b is missing in here"):
        check_tensors(expected, {"a": (2, 3)}, [], "here")
    with pytest.raises(ModelError, match=r"tensor a in here has the shape \[3, 2\] .* \[2, 3\]"):
        check_tensors(expected, {"a": (3, 2), "b": (4,)}, [], "here")
    with pytest.raises(ModelError, match="tensor c in here belongs to a variant"):
        check_tensors(expected, {"a": (2, 3), "b": (4,), "c": (1,)}, ["c"], "here")
