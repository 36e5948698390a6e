"""`rope_store`: split a fused projection, rotate queries and keys by position, write keys and values to their slots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..kv_cache import Cache
from ..linear import Activation, Constant, Indices, Norm


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines of every position (RoPE, Su et al., arXiv 2104.09864; the rotate-half form).

    cos, sin: [positions, D/2] float32, the attention scale of the RoPE variant multiplied in.
    """

    cos: Constant
    sin: Constant


class RopeStore(Protocol):
    def __call__(
        self,
        qkv: Activation,
        rotation: Rotation,
        positions: Indices,
        slots: Indices,
        cache: Cache,
        layer: int,
        *,
        q_norm: Norm | None = None,
        k_norm: Norm | None = None,
    ) -> Activation:
        """qkv [R, (Hq + 2 Hkv) * D] -> rotated queries [R, Hq, D]; row r's key and value go to slot slots[r].

        positions, slots: [R] int64. The cache is written in place, in this layer.
        q_norm, k_norm: RMS norm of each head, weights [D], applied before the rotation.
        """
        ...
