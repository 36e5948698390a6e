"""`tree_attention` in Triton: two launches, partial softmaxes over runs of keys, then their sums in order."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import e, log2
from typing import Any, NamedTuple

import numpy as np
import torch
import triton

from ..gpu.partial_softmax import attend, combine
from ..gpu.transfer import upload
from ..gpu.variant import Variant
from ..kv_cache.triton_impl import LIMITS, POINTERS, PagedCache
from ..paging import BLOCK_SIZE
from .work import GROUP, TILE, UNIT, Work

_STATES = ("maxima", "sums", "parts")
HEADS = 8  # query heads of a key head one program computes, at most
# Rows' heads per program of the second kernel, a warp each. An interpreted program takes its time however little it
# computes, so there one does it all; the bits are the same.
LANES = 64 if triton.knobs.runtime.interpret else 4


class DeviceWork(NamedTuple):
    """`Work` where the kernels read it, by the same names; int32."""

    items: torch.Tensor
    spans: torch.Tensor
    positions: torch.Tensor
    span_of: torch.Tensor
    tails: torch.Tensor
    nodes: torch.Tensor
    paths: torch.Tensor
    tables: torch.Tensor


def to_device(work: Work, device: torch.device) -> DeviceWork:
    # A step of chains alone has neither nodes nor paths, and a tensor without elements has no address to pass on.
    return DeviceWork(*upload([array if array.size else np.full(1, -1, np.int32) for array in work], device))


@dataclass(frozen=True, slots=True)
class _Model:
    """What decides how the kernels are compiled; neither rows nor items do, or a row's bits would depend on them."""

    q_heads: int
    kv_heads: int
    head_dim: int
    stored: torch.dtype  # the cache's
    amd: bool

    @property
    def splits(self) -> int:
        """Programs the query heads of a key head are spread over."""
        return -(-self.q_heads // self.kv_heads // HEADS)

    @property
    def lanes(self) -> int:
        heads: int = triton.next_power_of_2(-(-self.q_heads // self.kv_heads // self.splits))
        return TILE * heads

    def attend(self) -> tuple[dict[str, Any], dict[str, int]]:
        """Constants and options of `attend`."""
        constants = dict(**self._shared(), BLOCK=BLOCK_SIZE, SHIFT=BLOCK_SIZE.bit_length() - 1)
        # Units on their way while one is in use: enough bytes to hide the memory's latency where two programs share a
        # processor, and no more than its shared memory has room for. Each takes two stages, for its slots come first.
        # On AMD's 64 KiB two programs find room with one unit each, and do without.
        ahead = min(4, max(1, 65536 // (2 * UNIT * constants["BLOCK_D"] * self.stored.itemsize)))
        warps = 8 if not self.amd and (self.lanes > 64 or constants["BLOCK_D"] > 128) else 4
        stages = 1 if self.amd else 2 * ahead + 1
        return constants, {"num_warps": warps, "num_stages": stages}

    def combine(self) -> tuple[dict[str, Any], dict[str, int]]:
        ahead = 3 if self.amd else 6  # partial states on their way
        return dict(**self._shared(), LANES=LANES, AHEAD=ahead), {"num_warps": LANES, "num_stages": 1}

    def _shared(self) -> dict[str, Any]:
        return {
            "SCALE": self.head_dim**-0.5 * log2(e),
            "D": self.head_dim,
            "BLOCK_D": triton.next_power_of_2(self.head_dim),
            "Q_HEADS": self.q_heads,
            "KV_HEADS": self.kv_heads,
            "SPLITS": self.splits,
            "HEADS": self.lanes // TILE,
            "TILE": TILE,
            "UNIT": UNIT,
            "GROUP": GROUP,
        }


def tree_attention(q: torch.Tensor, cache: PagedCache, layer: int, prepared: DeviceWork) -> torch.Tensor:
    """q [R, Hq, D], its last dimension dense -> [R, Hq * D] in q's dtype; D: multiples of 16 from 16 to 256.

    Rows whose prepared position is -1 become zeros.
    """
    rows, q_heads, head_dim = q.shape
    k, v = cache.k[layer], cache.v[layer]
    scales = (None if scale is None else scale[layer] for scale in (cache.k_scale, cache.v_scale))
    kv_heads = k.shape[1]
    model = _Model(q_heads, kv_heads, head_dim, k.dtype, torch.version.hip is not None)
    programs = len(prepared.items) * kv_heads * model.splits
    maxima, sums = (torch.empty(programs, model.lanes, dtype=torch.float32, device=q.device) for _ in range(2))
    parts = torch.empty(programs, model.lanes, head_dim, dtype=torch.float32, device=q.device)
    constants, options = model.attend()
    attend[(programs,)](
        q,
        k,
        v,
        *scales,
        prepared.items,
        prepared.positions,
        prepared.nodes,
        prepared.paths,
        prepared.tables,
        maxima,
        sums,
        parts,
        q.stride(0),
        q.stride(1),
        **constants,
        **options,
    )
    out = torch.empty(rows, q_heads * head_dim, dtype=q.dtype, device=q.device)
    constants, options = model.combine()
    places = (prepared.spans, prepared.positions, prepared.span_of, prepared.tails)
    combine[(triton.cdiv(rows * q_heads, LANES),)](*places, maxima, sums, parts, out, rows, **constants, **options)
    return out


def variants() -> list[Variant]:
    """The default model, 8B models over caches of every form, and models of other head counts and sizes."""
    bf16, f16 = torch.bfloat16, torch.float16
    found = []
    for amd in (False, True):
        for q_heads, kv_heads, head_dim, dtype, stored in (
            (9, 3, 64, bf16, bf16),
            (32, 8, 128, bf16, bf16),
            (32, 8, 128, f16, f16),
            (32, 8, 128, bf16, torch.int8),
            *([] if amd else [(32, 8, 128, bf16, torch.float8_e4m3fn)]),
            (64, 8, 128, bf16, bf16),
            (32, 32, 80, bf16, bf16),
            (16, 8, 256, bf16, bf16),
        ):
            model = _Model(q_heads, kv_heads, head_dim, stored, amd)
            name = f"{q_heads}/{kv_heads}x{head_dim} {POINTERS[dtype][1:]}"
            found.append(_attend_variant(f"attend {name} over {POINTERS[stored][1:]}", model, dtype))
            if (q_heads, head_dim, dtype, stored) in ((9, 64, bf16, bf16), (32, 80, bf16, bf16)):
                found.append(_combine_variant(f"combine {name}", model, dtype))
    return found


def _attend_variant(name: str, model: _Model, dtype: torch.dtype) -> Variant:
    constants, options = model.attend()
    scales = ("k_scale", "v_scale")
    if model.stored not in LIMITS:
        constants |= dict.fromkeys(scales)
    stored, integers = POINTERS[model.stored], ("items", "positions", "nodes", "paths", "tables")
    types = {"q": POINTERS[dtype], "k": stored, "v": stored, **dict.fromkeys((*scales, *_STATES), "*fp32")}
    types |= {**dict.fromkeys(("row_stride", "head_stride"), "i32"), **dict.fromkeys(integers, "*i32")}
    return _variant(name, attend, types, constants, options, model, integers)


def _combine_variant(name: str, model: _Model, dtype: torch.dtype) -> Variant:
    constants, options = model.combine()
    integers = ("spans", "positions", "span_of", "tails")
    types = {
        **dict.fromkeys(integers, "*i32"),
        **dict.fromkeys(_STATES, "*fp32"),
        "out": POINTERS[dtype],
        "rows": "i32",
    }
    return _variant(name, combine, types, constants, options, model, (*integers, "rows"))


def _variant(
    name: str,
    kernel: Any,
    types: dict[str, str],
    constants: dict[str, Any],
    options: dict[str, int],
    model: _Model,
    unaligned: Collection[str],
) -> Variant:
    types = {argument: spelled for argument, spelled in types.items() if argument not in constants}
    aligned = tuple(argument for argument in types if argument not in unaligned)
    nvidia = ("sm_90",) if model.stored == torch.float8_e4m3fn else ("sm_80", "sm_90")
    targets = ("gfx942",) if model.amd else nvidia
    name = f"{name} amd" if model.amd else name
    return Variant(name, kernel, types, constants, aligned, **options, targets=targets)
