"""Rotary position embedding: its parameters, and the frequencies they stand for.

Sources: RoPE, Su et al., arXiv 2104.09864; linear position interpolation, Chen et al., arXiv 2306.15595;
YaRN ("NTK by parts" and its attention temperature), Peng et al., arXiv 2309.00071; the Llama 3.1 rule,
"The Llama 3 Herd of Models", arXiv 2407.21783, and its reference code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from paceline.engine.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

Scaling = Literal["none", "linear", "llama3", "yarn"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeConfig:
    """How positions turn into angles. Raises ModelError for values that cannot be."""

    theta: float = 10000.0  # base of the geometric series of frequencies
    scaling: Scaling = "none"
    factor: float = 1.0  # the context is stretched this many times
    low_freq_factor: float = 1.0  # llama3: wavelengths above original_context / low are divided by factor
    high_freq_factor: float = 4.0  # llama3: wavelengths below original_context / high are kept
    original_context: int = 0  # llama3, yarn: positions seen before stretching
    beta_fast: float = 32.0  # yarn: rotations over original_context above which a dimension is kept
    beta_slow: float = 1.0  # yarn: rotations below which a dimension is fully interpolated
    truncate: bool = True  # yarn: round the two bounds outwards to whole dimensions
    attention_scale: float = 1.0  # multiplies cos and sin
    factors: tuple[float, ...] | None = None  # [D/2] divisors of the frequencies, as GGUF's rope_freqs.weight has them

    def __post_init__(self) -> None:
        if not (math.isfinite(self.theta) and self.theta > 1):
            raise ModelError(f"The model's rope_theta is {self.theta:g}; it must be above 1.")
        if self.scaling not in get_args(Scaling):
            raise ModelError(_unsupported(self.scaling))
        if not (math.isfinite(self.factor) and self.factor > 0):
            raise ModelError(f"The model's RoPE scaling factor is {self.factor:g}; it must be above 0.")
        if self.scaling in ("llama3", "yarn") and self.original_context < 1:
            raise ModelError(f"The model's {self.scaling} RoPE scaling does not say its original context length.")
        if self.scaling == "llama3" and not 0 < self.low_freq_factor < self.high_freq_factor:
            raise ModelError(
                f"The model's llama3 RoPE scaling needs 0 < low_freq_factor < high_freq_factor, "
                f"got {self.low_freq_factor:g} and {self.high_freq_factor:g}."
            )
        if self.factors is not None and not all(math.isfinite(f) and f > 0 for f in self.factors):
            raise ModelError("The model's RoPE frequency factors must all be above 0.")


def rope_inv_freq(rope: RopeConfig, head_dim: int) -> tuple[NDArray[np.float64], float]:
    """Angle per position of each rotated pair, and the factor on cos and sin.

    Returns (inv_freq [head_dim / 2] in radians per position, attention scale). Pair i of the rotate-half layout is
    (i, i + head_dim / 2) and turns by `position * inv_freq[i]`.
    """
    inv_freq = rope.theta ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim)
    if rope.scaling == "linear":
        inv_freq = inv_freq / rope.factor
    elif rope.scaling == "llama3":
        inv_freq = _llama3(inv_freq, rope)
    elif rope.scaling == "yarn":
        inv_freq = _yarn(inv_freq, rope, head_dim)
    if rope.factors is not None:
        inv_freq = inv_freq / np.asarray(rope.factors, dtype=np.float64)
    return inv_freq, rope.attention_scale


def _llama3(inv_freq: NDArray[np.float64], rope: RopeConfig) -> NDArray[np.float64]:
    """Keep short wavelengths, divide long ones by the factor, blend those between linearly in turns per context."""
    turns = rope.original_context * inv_freq / (2 * math.pi)  # rotations within the original context
    keep = np.clip((turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor), 0.0, 1.0)
    return (1 - keep) * inv_freq / rope.factor + keep * inv_freq


def _yarn(inv_freq: NDArray[np.float64], rope: RopeConfig, head_dim: int) -> NDArray[np.float64]:
    """Section 3.2 of the paper: a linear ramp over dimensions between the bounds that beta_fast and beta_slow set."""

    def dimension(rotations: float) -> float:  # the dimension that turns `rotations` times in the original context
        return head_dim * math.log(rope.original_context / (rotations * 2 * math.pi)) / (2 * math.log(rope.theta))

    low, high = dimension(rope.beta_fast), dimension(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low == high:
        high += 0.001  # the ramp is a step, without dividing by zero
    ramp = np.clip((np.arange(head_dim // 2, dtype=np.float64) - low) / (high - low), 0.0, 1.0)
    return inv_freq / rope.factor * ramp + inv_freq * (1 - ramp)


def yarn_attention_scale(factor: float, weight: float = 1.0) -> float:
    """The paper's equation 22: 0.1 ln(s) + 1, on cos and sin alike, so its square lands on the logits."""
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def as_number(value: Any, name: str) -> float:
    """Raises ModelError for what a config calls a number and is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ModelError(f"The model's {name} must be a number, got {value!r}; download the model again.") from None


def _unsupported(name: object) -> str:
    return f"The model uses RoPE scaling {name!r}, which is not supported; supported: {', '.join(get_args(Scaling))}."


def rope_from_hf(config: Mapping[str, Any]) -> RopeConfig:
    """Read `rope_theta` and `rope_scaling`, or the newer `rope_parameters` that holds both. Raises ModelError."""
    parts = (config.get("rope_scaling") or {}, config.get("rope_parameters") or {})
    if not all(isinstance(part, Mapping) for part in parts):
        raise ModelError("The model's rope_scaling and rope_parameters must be JSON objects; download the model again.")
    parameters: Mapping[str, Any] = {**parts[0], **parts[1]}
    if any(isinstance(value, Mapping) for value in parameters.values()):
        raise ModelError("The model has different RoPE parameters per layer type, which is not supported.")
    if float(parameters.get("partial_rotary_factor") or config.get("partial_rotary_factor") or 1.0) != 1.0:
        raise ModelError("The model rotates only a part of each head (partial_rotary_factor), which is not supported.")
    theta = as_number(parameters.get("rope_theta") or config.get("rope_theta") or 10000.0, "rope_theta")
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    context = config.get("max_position_embeddings")
    # Dynamic NTK changes nothing up to max_position_embeddings, and the context ends there.
    if kind in ("default", "none", "dynamic"):
        return RopeConfig(theta=theta)
    if kind not in get_args(Scaling):
        raise ModelError(_unsupported(kind))
    original = int(
        parameters.get("original_max_position_embeddings")
        or config.get("original_max_position_embeddings")
        or context
        or 0
    )
    factor = parameters.get("factor")
    if factor is None and kind == "yarn" and context and original:
        factor = context / original
    if factor is None:
        raise ModelError(f"The model's {kind} RoPE scaling has no factor in config.json.")
    factor = float(factor)
    attention_scale = 1.0
    if kind == "yarn":
        given, mscale, mscale_all = (parameters.get(k) for k in ("attention_factor", "mscale", "mscale_all_dim"))
        if given is not None:
            attention_scale = float(given)
        elif mscale and mscale_all:
            attention_scale = yarn_attention_scale(factor, mscale) / yarn_attention_scale(factor, mscale_all)
        else:
            attention_scale = yarn_attention_scale(factor)
    return RopeConfig(
        theta=theta,
        scaling=cast("Scaling", kind),
        factor=factor,
        low_freq_factor=float(parameters.get("low_freq_factor") or 1.0),
        high_freq_factor=float(parameters.get("high_freq_factor") or 4.0),
        original_context=original,
        beta_fast=float(parameters.get("beta_fast") or 32.0),
        beta_slow=float(parameters.get("beta_slow") or 1.0),
        truncate=bool(parameters.get("truncate", True)),
        attention_scale=attention_scale,
    )


def rope_from_gguf(
    metadata: Mapping[str, Any], arch: str, context: int, factors: tuple[float, ...] | None
) -> RopeConfig:
    """Read the `<arch>.rope.*` keys; `factors` is the file's tensor rope_freqs.weight, if any. Raises ModelError."""

    def get(key: str) -> Any:
        return metadata.get(f"{arch}.rope.{key}")

    theta = as_number(get("freq_base") or 10000.0, "rope.freq_base")
    kind = get("scaling.type") or ("linear" if get("scale_linear") else "none")
    factor = float(get("scaling.factor") or get("scale_linear") or 1.0)
    if kind == "none" or (kind == "linear" and factor == 1.0):
        return RopeConfig(theta=theta, factors=factors)
    if kind not in ("linear", "yarn"):
        raise ModelError(_unsupported(kind))
    attention_scale = 1.0
    if kind == "yarn":
        attention_scale = float(get("scaling.attn_factor") or 1.0) * yarn_attention_scale(factor)
    return RopeConfig(
        theta=theta,
        scaling=cast("Scaling", kind),
        factor=factor,
        original_context=int(get("scaling.original_context_length") or context),
        beta_fast=float(get("scaling.yarn_beta_fast") or 32.0),
        beta_slow=float(get("scaling.yarn_beta_slow") or 1.0),
        attention_scale=attention_scale,
        factors=factors,
    )
