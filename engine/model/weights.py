"""The weights of a decoder as its passes use them: q, k, v fused, gate and up fused.

Matrices stay where they are until somebody packs them: each knows its tensors and reads them when asked. Tensors are
named as Hugging Face names them; a reader for another format translates. Shapes are [rows out, columns in].
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from paceline.engine.errors import ModelError

if TYPE_CHECKING:
    from .config import ModelConfig


Floats = NDArray[np.float32]


class TensorReader(Protocol):
    """Where tensors come from, one at a time."""

    def read(self, name: str, first: int, out: Floats) -> None:
        """Rows first … first + R - 1 of the tensor called `name`, as floats into `out` [R, columns]; a vector is a
        matrix of one column. Raises ModelError.
        """

    def kind(self, name: str) -> str:
        """The element type as GGUF spells it."""

    def raw(self, name: str) -> NDArray[np.uint8]:
        """The tensor as stored, [rows, bytes per row]."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a checkpoint, not read yet."""

    reader: TensorReader
    name: str
    shape: tuple[int, int]

    @property
    def kind(self) -> str:
        return self.reader.kind(self.name)

    def raw(self) -> NDArray[np.uint8]:
        """[rows, bytes per row]."""
        return self.reader.raw(self.name)

    def read(self, first: int, out: Floats) -> None:
        self.reader.read(self.name, first, out)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Tensors stacked by rows, [N, K]."""

    parts: tuple[StoredTensor, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return sum(part.shape[0] for part in self.parts), self.parts[0].shape[1]


@dataclass(slots=True, kw_only=True)
class LayerWeights:
    """One block. H hidden, I intermediate, D head size, Hq query heads, Hkv key-value heads.

    Rows of q and k are in rotate-half order: pair i of a head is rows (i, i + D/2).
    """

    attn_norm: Floats  # [H]
    qkv: Matrix  # [(Hq + 2 Hkv) D, H]: q rows, then k, then v
    qkv_bias: Floats | None  # [(Hq + 2 Hkv) D]
    q_norm: Floats | None  # [D]
    k_norm: Floats | None  # [D]
    out: Matrix  # [H, Hq D]
    ffn_norm: Floats  # [H]
    gate_up: Matrix  # [2 I, H]: gate rows, then up
    down: Matrix  # [H, I]


@dataclass(slots=True, kw_only=True)
class ModelWeights:
    """All weights of one decoder."""

    embed: Matrix  # [V, H]
    layers: list[LayerWeights]
    norm: Floats  # [H]
    lm_head: Matrix  # [V, H]; the same object as embed when the two are tied


def expected_tensors(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor a checkpoint of this config must hold."""
    hidden, inner, head = config.hidden_size, config.intermediate_size, config.head_dim
    expected: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config.vocab_size, hidden),
        "model.norm.weight": (hidden,),
    }
    if not config.tie_embeddings:
        expected["lm_head.weight"] = (config.vocab_size, hidden)
    rows = {"q": config.q_rows, "k": config.kv_rows, "v": config.kv_rows}
    for index in range(config.num_layers):
        layer = f"model.layers.{index}."
        for part, count in rows.items():
            expected[f"{layer}self_attn.{part}_proj.weight"] = (count, hidden)
            if config.qkv_bias:
                expected[f"{layer}self_attn.{part}_proj.bias"] = (count,)
        if config.qk_norm:
            expected[f"{layer}self_attn.q_norm.weight"] = (head,)
            expected[f"{layer}self_attn.k_norm.weight"] = (head,)
        expected[f"{layer}self_attn.o_proj.weight"] = (hidden, config.q_rows)
        expected[f"{layer}mlp.gate_proj.weight"] = (inner, hidden)
        expected[f"{layer}mlp.up_proj.weight"] = (inner, hidden)
        expected[f"{layer}mlp.down_proj.weight"] = (hidden, inner)
        expected[f"{layer}input_layernorm.weight"] = (hidden,)
        expected[f"{layer}post_attention_layernorm.weight"] = (hidden,)
    return expected


def check_tensors(
    expected: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], extras: Iterable[str], where: str
) -> None:
    """Raise ModelError, naming the tensor, if one is missing, has the wrong shape, or would be silently left out.

    `extras` are found names that change what the model computes if ignored.
    """
    for name, shape in expected.items():
        if name not in found:
            raise ModelError(f"The tensor {name} is missing in {where}; download the model again.")
        if found[name] != shape:
            raise ModelError(
                f"The tensor {name} in {where} has the shape {list(found[name])} where the model's config "
                f"asks for {list(shape)}; the weights and the config do not belong together."
            )
    for name in extras:
        raise ModelError(
            f"The tensor {name} in {where} belongs to a variant of the architecture that is not supported."
        )


def load_weights(config: ModelConfig, reader: TensorReader) -> ModelWeights:
    """Vectors are read now, matrices when they are packed: loading never holds the model twice."""

    def vector(name: str, size: int) -> Floats:
        column = np.empty((size, 1), np.float32)
        reader.read(name, 0, column)
        return column[:, 0]

    def matrix(prefix: str, columns: int, **rows: int) -> Matrix:
        parts = tuple(StoredTensor(reader, f"{prefix}{name}.weight", (count, columns)) for name, count in rows.items())
        return Matrix(parts)

    hidden, inner, head = config.hidden_size, config.intermediate_size, config.head_dim
    projections = {"q_proj": config.q_rows, "k_proj": config.kv_rows, "v_proj": config.kv_rows}
    layers = []
    for index in range(config.num_layers):
        layer = f"model.layers.{index}."
        attention, mlp = f"{layer}self_attn.", f"{layer}mlp."
        biases = [vector(f"{attention}{name}.bias", rows) for name, rows in projections.items() if config.qkv_bias]
        norms = [vector(f"{attention}{side}_norm.weight", head) if config.qk_norm else None for side in "qk"]
        layers.append(
            LayerWeights(
                attn_norm=vector(f"{layer}input_layernorm.weight", hidden),
                qkv=matrix(attention, hidden, **projections),
                qkv_bias=np.concatenate(biases) if biases else None,
                q_norm=norms[0],
                k_norm=norms[1],
                out=matrix(attention, config.q_rows, o_proj=hidden),
                ffn_norm=vector(f"{layer}post_attention_layernorm.weight", hidden),
                gate_up=matrix(mlp, hidden, gate_proj=inner, up_proj=inner),
                down=matrix(mlp, inner, down_proj=hidden),
            )
        )
    embed = matrix("model.", hidden, embed_tokens=config.vocab_size)
    return ModelWeights(
        embed=embed,
        layers=layers,
        norm=vector("model.norm.weight", hidden),
        lm_head=embed if config.tie_embeddings else matrix("", hidden, lm_head=config.vocab_size),
    )


def model_fingerprint(weights: ModelWeights) -> int:
    """The same for every file of one model, however its matrices are stored: vectors keep their values."""
    return zlib.crc32(np.ascontiguousarray(weights.norm, np.float32).tobytes())
