"""RoPE frequencies equal transformers', for each kind of scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiny_models import hf_config, reference_library

from paceline.engine.model.config import from_hf
from paceline.engine.model.rope import RopeConfig, rope_from_gguf, rope_inv_freq

_SCALINGS: dict[str, dict[str, Any]] = {
    "none": {},
    "linear": {"type": "linear", "factor": 2.5},
    "dynamic": {"rope_type": "dynamic", "factor": 4.0},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
    "yarn": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768},
    "yarn-own-bounds": {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 4096}
    | {"beta_fast": 16.0, "beta_slow": 2.0, "attention_factor": 1.25},
    "yarn-mscale": {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4096}
    | {"mscale": 1.0, "mscale_all_dim": 0.5},
    "yarn-untruncated": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 4096}
    | {"truncate": False},
    "yarn-no-original": {"rope_type": "yarn", "factor": 2.0},
}


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
@pytest.mark.parametrize("name", _SCALINGS)
def test_equals_transformers(name: str, theta: float) -> None:
    raw = hf_config("llama2", head_dim=64, max_position_embeddings=131072, rope_theta=theta)
    if _SCALINGS[name]:
        raw["rope_scaling"] = dict(_SCALINGS[name])  # transformers writes into it
    inv_freq, scale = rope_inv_freq(from_hf(raw).rope, 64)
    with reference_library() as transformers:
        from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

        config = transformers.LlamaConfig(**{k: v for k, v in raw.items() if k != "model_type"})
        reference = LlamaRotaryEmbedding(config)
    np.testing.assert_allclose(inv_freq, reference.inv_freq.numpy(), rtol=2e-5)
    assert scale == pytest.approx(reference.attention_scaling)


def test_factors_divide_the_frequencies() -> None:
    factors = (1.0, 2.0, 4.0, 8.0)
    plain, _ = rope_inv_freq(RopeConfig(), 8)
    divided, _ = rope_inv_freq(RopeConfig(factors=factors), 8)
    np.testing.assert_array_equal(divided, plain / np.array(factors))


def test_gguf_keys() -> None:
    yarn = {
        "qwen2.rope.freq_base": 1e6,
        "qwen2.rope.scaling.type": "yarn",
        "qwen2.rope.scaling.factor": 4.0,
        "qwen2.rope.scaling.original_context_length": 32768,
    }
    from_file = rope_from_gguf(yarn, "qwen2", 131072, None)
    raw = hf_config("qwen2", rope_theta=1e6, rope_scaling=_SCALINGS["yarn"])
    assert from_file == from_hf(raw).rope
    linear = rope_from_gguf({"llama.rope.scale_linear": 2.0}, "llama", 4096, None)
    assert (linear.scaling, linear.factor) == ("linear", 2.0)
