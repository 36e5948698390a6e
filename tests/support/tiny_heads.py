"""Random tiny drafters as folders, in the layouts of published ones and in our own, and what they compute, in numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from tiny_models import write_json

from paceline.engine.model.config import ModelConfig
from paceline.spec.heads import HeadsWeights
from paceline.spec.proposer import Proposal

Floats = NDArray[np.float32]


def heads_tensors(
    hidden: int, *, heads: int = 3, layers: int = 1, guessable: int | None = None, hydra: bool = False, seed: int = 0
) -> dict[str, torch.Tensor]:
    """guessable: rows of each head's own product; None for heads that use the target's."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator) * shape[-1] ** -0.5

    tensors = {}
    for head in range(heads):
        for layer in range(layers):
            first = hydra and layer == 0
            width = hidden * (head + 2) if first else hidden
            tensors[f"{head}.{layer}.linear.weight"] = draw(hidden, width)
            tensors[f"{head}.{layer}.linear.bias"] = draw(hidden)
            if first:
                tensors[f"{head}.{layer}.res_connection.weight"] = draw(hidden, width)
                tensors[f"{head}.{layer}.res_connection.bias"] = draw(hidden)
        if guessable is not None:
            tensors[f"{head}.{layers}.weight"] = draw(guessable, hidden) * 4
    return tensors


def write_published(folder: Path, tensors: dict[str, torch.Tensor], *, pickled: bool = True) -> Path:
    """As FasterDecoding/medusa-vicuna-7b-v1.3 is: its config names fewer heads than there are."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}
    write_json(folder / "config.json", config)
    if pickled:
        torch.save({name: tensor.half() for name, tensor in tensors.items()}, folder / "medusa_lm_head.pt")
    else:
        save_file(tensors, folder / "medusa_lm_head.safetensors")
    return folder


def write_own(
    folder: Path, architecture: str, tensors: dict[str, torch.Tensor], vocabulary: list[int] | None = None, **more: Any
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", {"architectures": [architecture], **more})
    if vocabulary is not None:
        tensors = {**tensors, "vocabulary": torch.tensor(vocabulary)}
    save_file(tensors, folder / "model.safetensors")
    return folder


def write_eagle(folder: Path, config: ModelConfig, seed: int = 0) -> Path:
    """One layer of the target's shape."""
    folder.mkdir(parents=True, exist_ok=True)
    hidden, inner, vocab = config.hidden_size, config.intermediate_size, config.vocab_size
    q, kv = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
    shapes = {
        "fc.weight": (hidden, 2 * hidden),
        "midlayer.self_attn.q_proj.weight": (q, 2 * hidden),
        "midlayer.self_attn.k_proj.weight": (kv, 2 * hidden),
        "midlayer.self_attn.v_proj.weight": (kv, 2 * hidden),
        "midlayer.self_attn.o_proj.weight": (hidden, q),
        "midlayer.mlp.gate_proj.weight": (inner, hidden),
        "midlayer.mlp.up_proj.weight": (inner, hidden),
        "midlayer.mlp.down_proj.weight": (hidden, inner),
        "lm_head.weight": (vocab, hidden),
    }
    generator = torch.Generator().manual_seed(seed)
    tensors = {name: torch.randn(shape, generator=generator) * shape[1] ** -0.5 for name, shape in shapes.items()}
    norms = ("norm", *(f"midlayer.{name}" for name in ("hidden_norm", "input_layernorm", "post_attention_layernorm")))
    tensors |= {f"{name}.weight": torch.ones(hidden) for name in norms}
    settings = {
        "architectures": ["LlamaForCausalLMEagle3"],
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": vocab,
        "taps": [0, 1],
    }
    write_json(folder / "config.json", settings)
    save_file(tensors, folder / "model.safetensors")
    return folder


def write_recurrent(folder: Path, config: ModelConfig, vocabulary: list[int] | None = None, **more: Any) -> Path:
    """A drafter of the target's shape that guesses among these tokens, or all."""
    hidden, inner = config.hidden_size, config.intermediate_size
    ids = torch.tensor(vocabulary or [*range(config.vocab_size)])
    shapes = {
        "mix.weight": (hidden, 2 * hidden),
        "mlp.gate_proj.weight": (inner, hidden),
        "mlp.up_proj.weight": (inner, hidden),
        "mlp.down_proj.weight": (hidden, inner),
    }
    generator = torch.Generator().manual_seed(0)
    tensors = {name: torch.randn(shape, generator=generator) * shape[1] ** -0.5 for name, shape in shapes.items()}
    for name in ("embed_norm", "hidden_norm", "mlp_norm", "norm"):
        tensors[f"{name}.weight"] = torch.rand(hidden, generator=generator) + 0.5
    settings = {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "vocab_size": config.vocab_size,
        "draft_vocab_size": len(ids),
        **more,
    }
    return write_own(folder, "PacelineRecurrent", {**tensors, "d2t": ids - torch.arange(len(ids))}, **settings)


def paths_of(proposal: Proposal) -> list[list[int]]:
    """Of each guess the tokens that lead to it, its own last."""
    paths: list[list[int]] = []
    for token, parent in zip(proposal.tokens, proposal.parents, strict=True):
        paths.append([*(paths[parent] if parent >= 0 else []), token])
    return paths


def plain_logits(weights: HeadsWeights, head: int, x: Floats, rows: Floats | None) -> Floats:
    """x [W] -> [N], in float64. rows: the target's."""
    y = x.astype(np.float64)
    for block in weights.heads[head]:
        z = block.weight @ y + block.bias
        straight = y if block.skip is None or block.skip_bias is None else block.skip @ y + block.skip_bias
        y = straight + z / (1 + np.exp(-z))
    last = weights.outs[head] if weights.outs is not None else rows
    assert last is not None
    return np.asarray(last @ y, np.float32)
