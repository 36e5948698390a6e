"""What a decoder looks like: read from a Hugging Face config.json or from GGUF metadata, validated here once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from paceline.engine.errors import ModelError

from .rope import RopeConfig, as_number, rope_from_gguf, rope_from_hf, rope_inv_freq

__all__ = ["FAMILIES", "ModelConfig", "RopeConfig", "from_gguf", "from_hf", "rope_inv_freq"]

FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
_GGUF_FAMILIES = ("llama", "qwen2", "qwen3")  # Mistral files call themselves llama


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """Sizes and switches of one decoder. Raises ModelError for values that cannot be."""

    family: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    context_length: int  # tokens the model was made for; a sliding window shortens it
    rope: RopeConfig
    tie_embeddings: bool  # lm_head is the embedding table
    qkv_bias: bool
    qk_norm: bool  # RMS norm per head on q and k, before RoPE

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, bool) and isinstance(value, (int, float)) and not value > 0:
                raise ModelError(f"The model's {field.name} is {value}; it must be above 0.")
        if self.num_heads % self.num_kv_heads:
            raise ModelError(
                f"The model's {self.num_heads} attention heads cannot share {self.num_kv_heads} key-value heads evenly."
            )
        if self.head_dim % 2:
            raise ModelError(f"The model's head size is {self.head_dim}; RoPE needs an even one.")
        if self.rope.factors is not None and len(self.rope.factors) != self.head_dim // 2:
            raise ModelError(
                f"The model has {len(self.rope.factors)} RoPE frequency factors; "
                f"its head size needs {self.head_dim // 2}."
            )

    @property
    def q_rows(self) -> int:
        """Rows of the query projection: num_heads * head_dim."""
        return self.num_heads * self.head_dim

    @property
    def kv_rows(self) -> int:
        """Rows of the key (or value) projection: num_kv_heads * head_dim."""
        return self.num_kv_heads * self.head_dim


def _unsupported(architecture: object, supported: tuple[str, ...]) -> ModelError:
    return ModelError(
        f"The model's architecture {str(architecture)!r} is not supported; supported: {', '.join(supported)}."
    )


def _whole(value: Any, key: str, where: str) -> int:
    """An integer from untrusted JSON or metadata; a per-layer list is taken when all its entries agree."""
    if isinstance(value, (list, tuple)) and value and all(entry == value[0] for entry in value):
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int):
        problem = "is missing" if value is None else f"is {str(value)[:60]!r}, not one whole number"
        raise ModelError(f"The value {key} in {where} {problem}, so the model cannot be read.")
    return value


def from_hf(config: Mapping[str, Any]) -> ModelConfig:
    """The config of a Hugging Face folder, from the parsed config.json. Raises ModelError."""
    where = "config.json"
    family = config.get("model_type")
    if family not in FAMILIES:
        raise _unsupported(family or (config.get("architectures") or ["?"])[0], FAMILIES)
    quantization = config.get("quantization_config")
    if quantization:
        method = quantization.get("quant_method", "unknown") if isinstance(quantization, Mapping) else "unknown"
        raise ModelError(
            f"The model's weights are quantised with {str(method)!r}, which is not supported; "
            "use the float checkpoint, or a GGUF file of the model."
        )
    activation = config.get("hidden_act") or "silu"
    if activation not in ("silu", "swish"):
        raise ModelError(f"The model's activation {str(activation)!r} is not supported; supported: silu.")
    # Only Qwen2 has biases on q, k and v alone; the flag of the others adds one to the output projection too.
    for flag in ("attention_bias", "mlp_bias"):
        if family != "qwen2" and config.get(flag):
            raise ModelError(f"The model sets {flag}, which is not supported for {family} models.")

    def size(key: str, default: int | None = None) -> int:
        value = config.get(key)
        return default if value is None and default is not None else _whole(value, key, where)

    hidden, heads = size("hidden_size"), size("num_attention_heads")
    if config.get("head_dim") is None and family != "qwen3" and heads > 0 and hidden % heads:
        raise ModelError(f"The model's hidden size {hidden} cannot be split over {heads} attention heads.")
    context = size("max_position_embeddings")
    rope = rope_from_hf(config)
    if rope.scaling == "yarn":  # these files often keep the length from before stretching
        context = max(context, round(rope.original_context * rope.factor))
    window = config.get("sliding_window")
    windowed = family in ("llama", "mistral") or bool(config.get("use_sliding_window"))
    if windowed and window is not None:
        # Inside the window, windowed and full attention are the same computation.
        context = min(context, _whole(window, "sliding_window", where))
    return ModelConfig(
        family=family,
        vocab_size=size("vocab_size"),
        hidden_size=hidden,
        intermediate_size=size("intermediate_size"),
        num_layers=size("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=size("num_key_value_heads", heads),
        head_dim=size("head_dim", 128 if family == "qwen3" else hidden // max(heads, 1)),
        rms_norm_eps=as_number(config.get("rms_norm_eps") or 1e-6, "rms_norm_eps"),
        context_length=context,
        rope=rope,
        tie_embeddings=bool(config.get("tie_word_embeddings", False)),
        qkv_bias=family == "qwen2",
        qk_norm=family == "qwen3",
    )


def from_gguf(
    metadata: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
    rope_factors: tuple[float, ...] | None = None,
) -> ModelConfig:
    """The config of a GGUF file.

    `metadata` is key -> value, `shapes` tensor name -> shape with rows first (tied embeddings, biases and q/k norms
    show only there), `rope_factors` the values of rope_freqs.weight [head_dim / 2]. Raises ModelError.
    """
    where = "the file's metadata"
    arch = metadata.get("general.architecture")
    if arch not in _GGUF_FAMILIES:
        raise _unsupported(arch, _GGUF_FAMILIES)
    if metadata.get(f"{arch}.expert_count"):
        raise ModelError("The model is a mixture of experts, which is not supported; use a dense model.")
    if (metadata.get("split.count") or 1) > 1:
        raise ModelError(
            f"The file is one of {metadata['split.count']} parts of a split model; join them with gguf-split --merge."
        )

    def size(key: str, default: int | None = None) -> int:
        value = metadata.get(f"{arch}.{key}")
        return default if value is None and default is not None else _whole(value, f"{arch}.{key}", where)

    hidden, heads = size("embedding_length"), size("attention.head_count")
    if f"{arch}.attention.key_length" not in metadata and heads > 0 and hidden % heads:
        raise ModelError(f"The model's hidden size {hidden} cannot be split over {heads} attention heads.")
    head_dim = size("attention.key_length", hidden // max(heads, 1))
    for key, name in (("attention.value_length", "value"), ("rope.dimension_count", "rotated")):
        if size(key, head_dim) != head_dim:
            raise ModelError(f"The model's {name} size {size(key)} differs from its head size, which is not supported.")
    context = size("context_length")
    rope = rope_from_gguf(metadata, arch, context, rope_factors)
    embedding = shapes.get("token_embd.weight")
    eps = metadata.get(f"{arch}.attention.layer_norm_rms_epsilon")
    return ModelConfig(
        family=arch,
        vocab_size=embedding[0] if embedding else size("vocab_size"),
        hidden_size=hidden,
        intermediate_size=size("feed_forward_length"),
        num_layers=size("block_count"),
        num_heads=heads,
        num_kv_heads=size("attention.head_count_kv", heads),
        head_dim=head_dim,
        rms_norm_eps=as_number(eps or 1e-6, "attention.layer_norm_rms_epsilon"),
        context_length=min(context, size("attention.sliding_window", context) or context),
        rope=rope,
        tie_embeddings="output.weight" not in shapes,
        qkv_bias="blk.0.attn_q.bias" in shapes,
        qk_norm="blk.0.attn_q_norm.weight" in shapes,
    )
