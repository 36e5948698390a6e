"""EAGLE-3 drafters from their files. Names of tensors and of the config are those of published checkpoints.

Ours add `taps` (after how many layers the target's hidden states are read), `trained_for` (see `speculators`), and may
lack `lm_head.weight`, where the target's own rows serve.
"""

from __future__ import annotations

import numpy as np

from paceline.spec.eagle import EagleWeights

from .drafter_file import CONFIG, DrafterFile
from .errors import ModelError
from .model.config import ModelConfig


def read_eagle(file: DrafterFile, target: ModelConfig) -> EagleWeights:
    """Raises ModelError where the drafter does not fit the target."""
    hidden = file.size("hidden_size")
    source = file.size("target_hidden_size", hidden)
    file.check_hidden(source, target)
    vocabulary = file.vocabulary(target)
    heads, kv_heads, head_dim = _heads(file, hidden)
    layers = file.size("num_hidden_layers", 1)
    if layers != 1:
        raise ModelError(
            f"The drafter's config {file.folder / CONFIG} asks for {layers} layers, where one is supported; choose "
            "another drafter."
        )
    inner = file.size("intermediate_size")
    taps = _taps(file, target)
    q, kv = heads * head_dim, kv_heads * head_dim
    layer, attention, mlp = "midlayer.", "midlayer.self_attn.", "midlayer.mlp."
    qkv = np.concatenate(
        [
            file.floats(f"{attention}{name}_proj.weight", rows, 2 * hidden)
            for name, rows in (("q", q), ("k", kv), ("v", kv))
        ]
    )
    fc = file.floats("fc.weight", hidden, len(taps) * source)
    own_embed, own_head = (
        # Where sizes differ the target's rows cannot serve: then the missing tensor is named below.
        name in file or hidden != target.hidden_size
        for name in ("embed_tokens.weight", "lm_head.weight")
    )
    return EagleWeights(
        taps=taps,
        projections=tuple(np.ascontiguousarray(part) for part in np.split(fc, len(taps), axis=1)),
        embed_norm=file.floats(f"{layer}input_layernorm.weight", hidden),
        hidden_norm=file.floats(f"{layer}hidden_norm.weight", hidden),
        qkv_embed=np.ascontiguousarray(qkv[:, :hidden]),
        qkv_hidden=np.ascontiguousarray(qkv[:, hidden:]),
        out=file.floats(f"{attention}o_proj.weight", hidden, q),
        ffn_norm=file.floats(f"{layer}post_attention_layernorm.weight", hidden),
        gate_up=np.concatenate([file.floats(f"{mlp}{name}_proj.weight", inner, hidden) for name in ("gate", "up")]),
        down=file.floats(f"{mlp}down_proj.weight", hidden, inner),
        norm=file.floats("norm.weight", hidden),
        eps=file.number("rms_norm_eps", 1e-6),
        kv_heads=kv_heads,
        head_dim=head_dim,
        rope_theta=file.number("rope_theta", 10000.0),
        vocabulary=vocabulary,
        embed=file.floats("embed_tokens.weight", target.vocab_size, hidden) if own_embed else None,
        head=file.floats("lm_head.weight", len(vocabulary), hidden) if own_head else None,
    )


def _heads(file: DrafterFile, hidden: int) -> tuple[int, int, int]:
    """(query heads, key heads, head size), as attention can use them."""
    heads = file.size("num_attention_heads")
    kv_heads = file.size("num_key_value_heads", heads)
    head_dim = file.size("head_dim", hidden // heads)
    if heads % kv_heads or head_dim % 2:
        raise ModelError(
            f"The drafter's config {file.folder / CONFIG} has {heads} attention heads and {kv_heads} key-value heads "
            f"of size {head_dim}; the first must be a multiple of the second and the size even, so fetch the drafter "
            "again."
        )
    return heads, kv_heads, head_dim


def _taps(file: DrafterFile, target: ModelConfig) -> tuple[int, ...]:
    """Published ones say nothing and read before layers 2, n / 2 and n - 3 (arXiv 2503.01840's code)."""
    count = target.num_layers
    taps = file.config.get("taps")
    if taps is None:
        taps = [2, count // 2, count - 3]
        if not 2 < count // 2 < count - 3:
            raise ModelError(
                f"The drafter {file.folder} reads hidden states after 2 layers, in the middle and 3 before the end, "
                f"but this model has only {count} layers; it was made for another model."
            )
    whole = isinstance(taps, list) and all(isinstance(tap, int) and not isinstance(tap, bool) for tap in taps)
    if not whole or not taps or len(set(taps)) < len(taps):
        raise ModelError(
            f"The drafter's config {file.folder / CONFIG} has {repr(taps)[:60]} as taps, which must be whole numbers, "
            "each once; fetch the drafter again."
        )
    wrong = next((tap for tap in taps if not 0 <= tap <= count), None)
    if wrong is not None:
        raise ModelError(
            f"The drafter {file.folder} reads hidden states after {wrong} layers, but this model has {count}; it was "
            "made for another model."
        )
    return tuple(taps)
