"""The weights of a decoder in the layout its passes read: q, k, v fused, gate and up fused, one dtype.

Tensors are named as Hugging Face names them; a reader for another format translates. Shapes are [rows out, columns in].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch

from paceline.engine.errors import ModelError

if TYPE_CHECKING:
    from .config import ModelConfig


@dataclass(slots=True, kw_only=True)
class LayerWeights:
    """One block. H hidden, I intermediate, D head size, Hq query heads, Hkv key-value heads.

    Rows of q and k are in rotate-half order: pair i of a head is rows (i, i + D/2).
    """

    attn_norm: torch.Tensor  # [H]
    qkv: torch.Tensor  # [(Hq + 2 Hkv) D, H]: q rows, then k, then v
    qkv_bias: torch.Tensor | None  # [(Hq + 2 Hkv) D]
    q_norm: torch.Tensor | None  # [D]
    k_norm: torch.Tensor | None  # [D]
    out: torch.Tensor  # [H, Hq D]
    ffn_norm: torch.Tensor  # [H]
    gate_up: torch.Tensor  # [2 I, H]: gate rows, then up
    down: torch.Tensor  # [H, I]


@dataclass(slots=True, kw_only=True)
class ModelWeights:
    """All weights of one decoder, on one device in one dtype."""

    embed: torch.Tensor  # [V, H]
    layers: list[LayerWeights]
    norm: torch.Tensor  # [H]
    lm_head: torch.Tensor  # [V, H]; the same object as embed when the two are tied


class TensorReader(Protocol):
    """Where tensors come from, one at a time."""

    def read_into(self, name: str, target: torch.Tensor) -> None:
        """Fill `target` (the tensor's shape; any device and float dtype) with the tensor called `name`."""


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


def load_weights(
    config: ModelConfig, reader: TensorReader, *, device: torch.device, dtype: torch.dtype
) -> ModelWeights:
    """Read every tensor into its place. Memory: the weights once, plus what the reader holds of one tensor."""

    def empty(*shape: int) -> torch.Tensor:
        return torch.empty(shape, device=device, dtype=dtype)

    def read(name: str, *shape: int) -> torch.Tensor:
        target = empty(*shape)
        reader.read_into(name, target)
        return target

    def fuse(names: Iterable[str], rows: Iterable[int], *columns: int) -> torch.Tensor:
        rows = list(rows)
        target = empty(sum(rows), *columns)
        start = 0
        for name, count in zip(names, rows, strict=True):
            reader.read_into(name, target[start : start + count])
            start += count
        return target

    hidden, inner, head = config.hidden_size, config.intermediate_size, config.head_dim
    qkv_rows = (config.q_rows, config.kv_rows, config.kv_rows)

    def layers() -> Iterator[LayerWeights]:
        for index in range(config.num_layers):
            layer = f"model.layers.{index}."
            qkv = [f"{layer}self_attn.{part}_proj" for part in "qkv"]
            yield LayerWeights(
                attn_norm=read(f"{layer}input_layernorm.weight", hidden),
                qkv=fuse((f"{name}.weight" for name in qkv), qkv_rows, hidden),
                qkv_bias=fuse((f"{name}.bias" for name in qkv), qkv_rows) if config.qkv_bias else None,
                q_norm=read(f"{layer}self_attn.q_norm.weight", head) if config.qk_norm else None,
                k_norm=read(f"{layer}self_attn.k_norm.weight", head) if config.qk_norm else None,
                out=read(f"{layer}self_attn.o_proj.weight", hidden, config.q_rows),
                ffn_norm=read(f"{layer}post_attention_layernorm.weight", hidden),
                gate_up=fuse((f"{layer}mlp.{part}_proj.weight" for part in ("gate", "up")), (inner, inner), hidden),
                down=read(f"{layer}mlp.down_proj.weight", hidden, inner),
            )

    embed = read("model.embed_tokens.weight", config.vocab_size, hidden)
    return ModelWeights(
        embed=embed,
        layers=list(layers()),
        norm=read("model.norm.weight", hidden),
        lm_head=embed if config.tie_embeddings else read("lm_head.weight", config.vocab_size, hidden),
    )
