"""Configs from both formats: what is read, and the one sentence for what is not."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_models import FAMILIES, hf_config

from paceline.engine.errors import ModelError
from paceline.engine.model.config import from_gguf, from_hf


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_read(name: str) -> None:
    raw = hf_config(name)
    config = from_hf(raw)
    assert config.family == raw["model_type"]
    assert config.num_kv_heads == raw["num_key_value_heads"]
    assert config.head_dim == raw.get("head_dim", raw["hidden_size"] // raw["num_attention_heads"])
    assert config.tie_embeddings == raw["tie_word_embeddings"]
    assert config.qkv_bias == (config.family == "qwen2")
    assert config.qk_norm == (config.family == "qwen3")
    assert config.rope.theta == raw["rope_theta"]


def test_key_value_heads_default_to_query_heads() -> None:
    raw = hf_config("llama2")
    del raw["num_key_value_heads"]
    assert from_hf(raw).num_kv_heads == 4


@pytest.mark.parametrize(
    ("family", "changes", "context"),
    [
        ("mistral", {"sliding_window": 100}, 100),
        ("mistral", {"sliding_window": 4096}, 256),
        ("mistral", {"sliding_window": None}, 256),
        ("qwen2", {"sliding_window": 100, "use_sliding_window": False}, 256),
        ("qwen2", {"sliding_window": 100, "use_sliding_window": True}, 100),
        ("qwen2-yarn", {"max_position_embeddings": 64}, 256),  # 4 x 64: such files keep the length before stretching
    ],
)
def test_context_length(family: str, changes: dict[str, Any], context: int) -> None:
    assert from_hf(hf_config(family, **changes)).context_length == context


@pytest.mark.parametrize("name", ["llama3.1", "qwen2-yarn", "mistral"])
def test_old_and_new_rope_keys_mean_the_same(name: str) -> None:
    old = hf_config(name)
    new = {k: v for k, v in old.items() if k not in ("rope_scaling", "rope_theta")}
    new["rope_parameters"] = {
        "rope_type": "default",
        **(old.get("rope_scaling") or {}),
        "rope_theta": old["rope_theta"],
    }
    assert from_hf(old) == from_hf(new)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "gpt_neox"}, ["'gpt_neox'", "llama, mistral, qwen2, qwen3"]),
        ({"model_type": None, "architectures": ["FooForCausalLM"]}, ["'FooForCausalLM'"]),
        ({"hidden_act": "gelu"}, ["'gelu'", "silu"]),
        ({"quantization_config": {"quant_method": "awq"}}, ["'awq'", "GGUF"]),
        ({"num_key_value_heads": 3}, ["4 attention heads", "3 key-value heads"]),
        ({"num_attention_heads": 5, "num_key_value_heads": 5}, ["64", "5 attention heads"]),
        ({"num_hidden_layers": 0}, ["num_layers is 0"]),
        ({"vocab_size": -1}, ["vocab_size is -1"]),
        ({"hidden_size": "64"}, ["hidden_size", "'64'"]),
        ({"hidden_size": None}, ["hidden_size", "missing"]),
        ({"head_dim": 15}, ["15"]),
        ({"attention_bias": True}, ["attention_bias"]),
        ({"mlp_bias": True}, ["mlp_bias"]),
        ({"rope_scaling": {"type": "longrope", "factor": 2.0}}, ["'longrope'", "linear", "yarn"]),
        ({"rope_scaling": {"type": "linear"}}, ["linear", "factor"]),
        ({"rope_scaling": {"type": "linear", "factor": -2.0}}, ["factor", "-2"]),
        ({"partial_rotary_factor": 0.5}, ["partial_rotary_factor"]),
        ({"rope_theta": 0.5}, ["rope_theta", "0.5"]),
        ({"rope_parameters": {"full_attention": {"rope_theta": 1e4}}}, ["per layer type"]),
    ],
)
def test_what_is_not_supported_is_named(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        from_hf(hf_config("llama2", **changes))
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert message.endswith(".")
    assert "\n" not in message


_GGUF: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.context_length": 256,
    "llama.embedding_length": 64,
    "llama.feed_forward_length": 96,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 10000.0,
}
_SHAPES = {"token_embd.weight": (300, 64)}


def test_gguf_sizes_come_from_metadata_and_tensors() -> None:
    config = from_gguf(_GGUF, _SHAPES)
    assert (config.vocab_size, config.head_dim, config.tie_embeddings, config.qk_norm) == (300, 16, True, False)
    other = from_gguf(
        {**_GGUF, "llama.attention.key_length": 32, "llama.attention.head_count_kv": [1, 1]},
        {**_SHAPES, "output.weight": (300, 64)},
    )
    assert (other.head_dim, other.num_kv_heads, other.tie_embeddings) == (32, 1, False)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"general.architecture": "gemma3"}, ["'gemma3'", "llama, qwen2, qwen3"]),
        ({"general.architecture": None}, ["not supported"]),
        ({"llama.expert_count": 8}, ["mixture of experts"]),
        ({"split.count": 3}, ["3 parts"]),
        ({"llama.block_count": None}, ["llama.block_count", "missing"]),
        ({"llama.attention.head_count_kv": [1, 2]}, ["head_count_kv", "[1, 2]"]),
        ({"llama.rope.dimension_count": 8}, ["8", "head size"]),
        ({"llama.attention.value_length": 8}, ["8", "head size"]),
        ({"llama.rope.scaling.type": "longrope"}, ["'longrope'"]),
    ],
)
def test_gguf_refusals(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        from_gguf({**_GGUF, **changes}, _SHAPES)
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_gguf_frequency_factors_must_fit_the_head() -> None:
    assert from_gguf(_GGUF, _SHAPES, (1.0,) * 8).rope.factors == (1.0,) * 8
    with pytest.raises(ModelError, match="4 RoPE frequency factors"):
        from_gguf(_GGUF, _SHAPES, (1.0,) * 4)
