"""Tiny random models of every supported family, as Hugging Face folders and as GGUF files, and their reference logits.

Nothing here imports transformers until a reference is asked for: it takes seconds.
"""

from __future__ import annotations

import importlib
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matrices import dense
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from paceline.engine.model.config import ModelConfig, from_hf, rope_inv_freq
from paceline.engine.model.weights import ModelWeights, expected_tensors

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>")
MERGES: tuple[tuple[str, str], ...] = tuple(
    (merge.split(" ")[0], merge.split(" ")[1])
    for merge in (
        *("Ġ t", "h e", "Ġt he", "i n", "e r", "a n", "o n", "r e", "Ġ a", "a t", "Ġ s", "o r", "e n", "i s"),
        *("Ġ w", "l l", "o u", "in g", "Ġa n", "Ġan d", "e s", "Ġ o", "Ġo f", "e d", "Ġ b", "Ġ c", "i t", "Ġ in"),
    )
)
VOCAB = len(SPECIAL) + 256 + len(MERGES)
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_LLAMA31_ROPE = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_YARN_ROPE = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}

# Differences from the common base; sizes are multiples of 32 so that every tensor can be quantised.
FAMILIES: dict[str, dict[str, Any]] = {
    "llama2": {"model_type": "llama", "num_key_value_heads": 4},
    "llama3.1": {"model_type": "llama", "rope_theta": 500000.0, "rope_scaling": _LLAMA31_ROPE},
    "smollm2": {"model_type": "llama", "num_attention_heads": 3, "num_key_value_heads": 1, "hidden_size": 96}
    | {"tie_word_embeddings": True, "rope_theta": 100000.0},
    "mistral": {"model_type": "mistral", "head_dim": 32, "sliding_window": None},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True, "rope_theta": 1000000.0},
    "qwen2-yarn": {"model_type": "qwen2", "rope_scaling": _YARN_ROPE},
    "qwen3": {"model_type": "qwen3", "head_dim": 32},
    "qwen3-tied": {"model_type": "qwen3", "head_dim": 32, "tie_word_embeddings": True},
}


def hf_config(family: str, **changes: Any) -> dict[str, Any]:
    """The config.json of a tiny model, in the form that is most common on the hub."""
    return {
        "vocab_size": VOCAB,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **FAMILIES[family],
        **changes,
    }


def random_tensors(config: ModelConfig, seed: int) -> dict[str, torch.Tensor]:
    """Weights large enough that logits differ clearly; names and shapes as on the hub."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in expected_tensors(config).items():
        noise = torch.randn(shape, generator=generator)
        if "norm" in name:
            tensors[name] = 1 + 0.2 * noise
        elif name.endswith(".bias"):
            tensors[name] = 0.5 * noise
        else:
            tensors[name] = noise * shape[-1] ** -0.5
    return tensors


def make_folder(folder: Path, family: str, *, seed: int = 0, shards: int = 1, **changes: Any) -> Path:
    """Write a complete Hugging Face folder of a tiny model; `changes` override config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    config = hf_config(family, **changes)
    write_json(folder / "config.json", config)
    tensors = random_tensors(from_hf(config), seed)
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        weight_map = {}
        for shard in range(shards):
            name = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
            part = dict(list(tensors.items())[shard::shards])
            save_file(part, folder / name, metadata={"format": "pt"})
            weight_map.update(dict.fromkeys(part, name))
        write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weight_map})
    (folder / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<|im_start|>",
            "eos_token": "<|im_end|>",
            "pad_token": "<|pad|>",
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    return folder


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def vocabulary() -> list[str]:
    """The tokens in id order: special ones, the 256 bytes, then merged pairs."""
    from tokenizers.pre_tokenizers import ByteLevel

    return [*SPECIAL, *sorted(ByteLevel.alphabet()), *("".join(pair) for pair in MERGES)]


def tokenizer_json() -> str:
    """A byte-level BPE tokenizer that can spell any text."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocab = {token: index for index, token in enumerate(vocabulary())}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=list(MERGES)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return tokenizer.to_str()


def write_gguf(folder: Path, path: Path, kind: str = "F32") -> Path:
    """Convert a folder made by `make_folder` to GGUF with matrices of the given type, as the common converter does.

    Rows of q and k of llama models are interleaved, and llama3 RoPE scaling becomes the tensor rope_freqs.weight.
    """
    import gguf
    from gguf.quants import quantize

    raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config = from_hf(raw)
    arch = "llama" if config.family == "mistral" else config.family
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name("tiny")
    writer.add_vocab_size(config.vocab_size)
    writer.add_context_length(raw["max_position_embeddings"])
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_layers)
    writer.add_head_count(config.num_heads)
    writer.add_head_count_kv(config.num_kv_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope.theta)
    if config.head_dim * config.num_heads != config.hidden_size:
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    if config.rope.scaling in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(config.rope.scaling))
        writer.add_rope_scaling_factor(config.rope.factor)
        if config.rope.scaling == "yarn":
            writer.add_rope_scaling_orig_ctx_len(config.rope.original_context)
    if config.rope.scaling == "llama3":
        plain = config.rope.theta ** (-np.arange(0, config.head_dim, 2) / config.head_dim)
        scaled, _ = rope_inv_freq(config.rope, config.head_dim)
        writer.add_tensor("rope_freqs.weight", (plain / scaled).astype(np.float32))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary())
    writer.add_token_types([3] * len(SPECIAL) + [1] * (VOCAB - len(SPECIAL)))
    writer.add_token_merges([" ".join(pair) for pair in MERGES])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template(CHAT_TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], config.num_layers)
    for name, tensor in load_tensors(folder).items():
        values = tensor.float().numpy()
        for part, heads in (("q_proj", config.num_heads), ("k_proj", config.num_kv_heads)):
            if arch == "llama" and part in name:
                halves = values.reshape(heads, 2, config.head_dim // 2, *values.shape[1:])
                values = halves.swapaxes(1, 2).reshape(values.shape)
        qtype = gguf.GGMLQuantizationType[kind if values.ndim == 2 else "F32"]
        gguf_name = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert gguf_name is not None, name
        writer.add_tensor(gguf_name, quantize(values, qtype), raw_dtype=qtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def load_tensors(folder: Path) -> dict[str, torch.Tensor]:
    """All tensors of a folder by name."""
    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


@contextmanager
def reference_library() -> Iterator[Any]:
    """transformers, quiet: its own warnings are not ours to fix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transformers: Any = importlib.import_module("transformers")
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        yield transformers


def reference_model(folder: Path) -> Any:
    """transformers' model of a folder, float32; raises if a weight is missing or left over."""
    with reference_library() as transformers:
        model, info = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
    assert not info["missing_keys"], info
    assert not info["unexpected_keys"], info
    return model.eval()


def reference_logits(folder: Path, ids: Sequence[int]) -> torch.Tensor:
    """transformers' logits [n, V] of a folder, float32 on the CPU."""
    return model_logits(reference_model(folder), ids)


def model_logits(model: Any, ids: Sequence[int]) -> torch.Tensor:
    """Logits [n, V] of a transformers model."""
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([list(ids)])).logits[0]
    return logits.clone()


def reference_from_weights(config: ModelConfig, weights: ModelWeights) -> Any:
    """A transformers llama model that holds the very weights of ours, for checkpoints that transformers cannot read."""
    with reference_library() as transformers:
        model = transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                vocab_size=config.vocab_size,
                hidden_size=config.hidden_size,
                intermediate_size=config.intermediate_size,
                num_hidden_layers=config.num_layers,
                num_attention_heads=config.num_heads,
                num_key_value_heads=config.num_kv_heads,
                head_dim=config.head_dim,
                rms_norm_eps=config.rms_norm_eps,
                max_position_embeddings=config.context_length,
                rope_parameters={"rope_type": "default", "rope_theta": config.rope.theta},
                tie_word_embeddings=config.tie_embeddings,
                attn_implementation="eager",
            )
        )
    missing, unexpected = model.load_state_dict(unfuse(config, weights), strict=False)
    assert not unexpected
    assert set(missing) <= ({"lm_head.weight"} if config.tie_embeddings else set())
    return model.eval()


def unfuse(config: ModelConfig, weights: ModelWeights) -> dict[str, torch.Tensor]:
    """Our weights under their names on the hub: the inverse of loading, written on its own to check it."""
    tensors = {"model.embed_tokens.weight": dense(weights.embed), "model.norm.weight": torch.from_numpy(weights.norm)}
    if not config.tie_embeddings:
        tensors["lm_head.weight"] = dense(weights.lm_head)
    q, kv, inner = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim, config.intermediate_size
    for index, layer in enumerate(weights.layers):
        prefix = f"model.layers.{index}."
        for suffix, fused in (("weight", dense(layer.qkv)), ("bias", _tensor(layer.qkv_bias))):
            if fused is not None:
                tensors[f"{prefix}self_attn.q_proj.{suffix}"] = fused[:q]
                tensors[f"{prefix}self_attn.k_proj.{suffix}"] = fused[q : q + kv]
                tensors[f"{prefix}self_attn.v_proj.{suffix}"] = fused[q + kv :]
        if layer.q_norm is not None and layer.k_norm is not None:
            tensors[f"{prefix}self_attn.q_norm.weight"] = torch.from_numpy(layer.q_norm)
            tensors[f"{prefix}self_attn.k_norm.weight"] = torch.from_numpy(layer.k_norm)
        tensors[f"{prefix}self_attn.o_proj.weight"] = dense(layer.out)
        tensors[f"{prefix}mlp.gate_proj.weight"] = dense(layer.gate_up)[:inner]
        tensors[f"{prefix}mlp.up_proj.weight"] = dense(layer.gate_up)[inner:]
        tensors[f"{prefix}mlp.down_proj.weight"] = dense(layer.down)
        tensors[f"{prefix}input_layernorm.weight"] = torch.from_numpy(layer.attn_norm)
        tensors[f"{prefix}post_attention_layernorm.weight"] = torch.from_numpy(layer.ffn_norm)
    return tensors


def _tensor(vector: NDArray[np.float32] | None) -> torch.Tensor | None:
    return None if vector is None else torch.from_numpy(vector)
