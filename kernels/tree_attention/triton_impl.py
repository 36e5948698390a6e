"""`tree_attention` in Triton: partial softmaxes over runs of keys (`work.py` says which), then their sums in order.

A partial state of a row is (m, z, acc): the largest score, the sum of 2^(score - m) and the values weighted by the same
(FlashAttention, Dao et al., arXiv 2205.14135; split over keys as in Flash-Decoding, Dao et al., 2023).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import e, log2
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl

from ..gpu.variant import Variant
from ..kv_cache.triton_impl import LIMITS, POINTERS, PagedCache
from ..paging import BLOCK_SIZE
from .work import GROUP, TILE, UNIT, Work

HEADS = 8  # query heads of a key head one program computes, at most
# The second kernel: rows' heads per program, a warp each, and the partial states each has in flight. An interpreted
# program takes its time however little it computes, so there few do it all; the bits are the same.
LANES, CHUNK = (64, 1) if triton.knobs.runtime.interpret else (4, 8)


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
    arrays = (array if array.size else np.full(1, -1, np.int32) for array in work)
    return DeviceWork(*(torch.from_numpy(array).to(device) for array in arrays))


@triton.jit
def _fold(m, z, acc, part_m, part_z, part_acc, SCALE: tl.constexpr):
    """The state (m, z [M], acc [M, D]) with a further one folded in; an empty one (-inf, 0, 0) changes no bit.

    Both kernels fold here and only here. Sums are spelled as `fma`: a compiler left to contract them itself may do it
    in one kernel and not in the other.
    """
    largest = tl.maximum(m, part_m)
    finite = tl.where(largest == float("-inf"), 0.0, largest)
    kept = tl.math.exp2((m - finite) * SCALE)
    added = tl.math.exp2((part_m - finite) * SCALE)
    z = tl.math.fma(part_z, added, z * kept)
    acc = tl.math.fma(part_acc, tl.broadcast_to(added[:, None], acc.shape), acc * kept[:, None])
    return largest, z, acc


@triton.jit(do_not_specialize_on_alignment=["items", "positions", "nodes", "paths", "tables"])
def _attend(
    q,  # [R, Hq, D], strides row_stride, head_stride, 1
    k,  # [blocks, Hkv, BLOCK, D]
    v,
    k_scale,  # [blocks, Hkv, BLOCK] or None
    v_scale,
    items,
    positions,
    nodes,
    paths,
    tables,
    maxima,  # [I, Hkv * SPLITS, TILE * HEADS]
    sums,
    parts,  # [I, Hkv * SPLITS, TILE * HEADS, D]
    row_stride,
    head_stride,
    SCALE: tl.constexpr,
    D: tl.constexpr,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    SPLITS: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    UNIT: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK: tl.constexpr,
    SHIFT: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One item for one key head, or for HEADS of the query heads that share it: its nodes times these are the rows."""
    program = tl.program_id(0)
    item = items + program // (KV_HEADS * SPLITS) * 8
    head = program % (KV_HEADS * SPLITS)
    key_head = head // SPLITS
    count = tl.load(item + 1)
    if count <= 0:
        return
    begin = tl.load(item)
    table = tables + tl.load(item + 2)
    context = tl.load(item + 3)
    path = tl.load(item + 4)
    first = tl.load(item + 5)
    stop = first + tl.load(item + 6)

    lane = tl.arange(0, TILE * HEADS)
    node = lane // HEADS
    shared = head % SPLITS * HEADS + lane % HEADS  # which of the query heads of this key head
    live = (node < count) & (shared < Q_HEADS // KV_HEADS)
    row = tl.load(nodes + begin + node, mask=node < tl.where(path >= 0, count, 0), other=0)
    row = tl.where(path >= 0, row, begin + node)
    position = tl.load(positions + row, mask=live, other=-1)
    last = tl.max(position, 0)
    query_head = key_head * (Q_HEADS // KV_HEADS) + shared
    depth = tl.arange(0, BLOCK_D)
    inside = depth < D
    queries = tl.load(  # zeros in surplus lanes
        q + row.to(tl.int64)[:, None] * row_stride + query_head[:, None] * head_stride + depth[None, :],
        mask=live[:, None] & inside[None, :],
        other=0.0,
    )

    for start in range(first, stop, GROUP):
        m = tl.full([TILE * HEADS], float("-inf"), tl.float32)
        z = tl.zeros([TILE * HEADS], tl.float32)
        acc = tl.zeros([TILE * HEADS, BLOCK_D], tl.float32)
        for unit in range(start, tl.minimum(start + GROUP, stop)):
            place = unit * UNIT + tl.arange(0, UNIT)
            at = tl.minimum(place, last)  # what comes after is masked, and read from the same block or slot
            found = tl.load(tl.where(place >= context, paths + path + at - context, table + at // BLOCK))
            slot = ~found  # of the path, if not negative; else found is a block
            block = tl.where(found < 0, slot >> SHIFT, found)
            within = tl.where(found < 0, slot, tl.arange(0, UNIT)) & (BLOCK - 1)
            key = (block * KV_HEADS + key_head) * BLOCK + within  # of a layer's some millions
            page = key.to(tl.int64)[:, None] * D + depth[None, :]
            if BLOCK_D == D:
                keys = tl.load(k + page)
                values = tl.load(v + page)
            else:
                keys = tl.load(k + page, mask=inside[None, :], other=0.0)
                values = tl.load(v + page, mask=inside[None, :], other=0.0)

            scores = tl.dot(queries, tl.trans(keys.to(queries.dtype)), input_precision="ieee")
            if k_scale is not None:
                scores = scores * tl.load(k_scale + key)[None, :]
            scores = tl.where(place[None, :] <= position[:, None], scores, float("-inf"))
            unit_m = tl.max(scores, 1)
            finite = tl.where(unit_m == float("-inf"), 0.0, unit_m)
            weights = tl.math.exp2(
                tl.math.fma(scores, SCALE, tl.broadcast_to((-finite * SCALE)[:, None], scores.shape))
            )
            unit_z = tl.sum(weights, 1)
            if v_scale is not None:
                weights = weights * tl.load(v_scale + key)[None, :]
            unit_acc = tl.dot(weights.to(queries.dtype), values.to(queries.dtype), input_precision="ieee")
            m, z, acc = _fold(m, z, acc, unit_m, unit_z, unit_acc, SCALE)
        # Read again and worked out here: before the loop, registers would hold it throughout.
        live = (node < tl.load(item + 1)) & (shared < Q_HEADS // KV_HEADS)
        kept = live[:, None] & inside[None, :]
        state = (tl.load(item + 7).to(tl.int64) * (KV_HEADS * SPLITS) + head) * (TILE * HEADS) + lane
        where = state[:, None] * D + depth[None, :]
        if start > first:  # the total of the groups before lies where this program left it: registers hold one group
            total_m = tl.load(maxima + state, mask=live, other=float("-inf"))
            total_z = tl.load(sums + state, mask=live, other=0.0)
            total_acc = tl.load(parts + where, mask=kept, other=0.0)
            m, z, acc = _fold(total_m, total_z, total_acc, m, z, acc, SCALE)
        tl.store(maxima + state, m, mask=live)
        tl.store(sums + state, z, mask=live)
        tl.store(parts + where, acc, mask=kept)


@triton.jit(do_not_specialize=["rows"], do_not_specialize_on_alignment=["spans", "positions", "span_of", "tails"])
def _combine(
    spans,
    positions,
    span_of,
    tails,
    maxima,
    sums,
    parts,
    out,  # [R, Hq, D]
    rows,
    SCALE: tl.constexpr,
    D: tl.constexpr,
    Q_HEADS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    SPLITS: tl.constexpr,
    HEADS: tl.constexpr,
    TILE: tl.constexpr,
    UNIT: tl.constexpr,
    GROUP: tl.constexpr,
    LANES: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """The partial states of LANES rows' heads, each in order; a padding row becomes zeros."""
    lane = tl.program_id(0) * LANES + tl.arange(0, LANES)
    row = lane // Q_HEADS
    depth = tl.arange(0, BLOCK_D)
    position = tl.load(positions + row, mask=row < rows, other=-1)
    seen = tl.where(position < 0, 0, position // UNIT + 1)  # units
    span = spans + tl.load(span_of + row, mask=seen > 0, other=0) * 4
    first = tl.load(span)
    node = row - tl.load(span + 1)
    step = tl.maximum(tl.load(span + 2), 1)  # padding reads -1
    shared = tl.minimum(tl.load(span + 3), seen)
    tail_place = tl.load(tails + row, mask=seen > 0, other=0)
    before = tl.where(seen > 0, (shared + step - 1) // step, 0)
    count = tl.where(seen > 0, before + seen - shared, 0)
    head = lane % Q_HEADS
    among = head % (Q_HEADS // KV_HEADS)  # those of its key head
    part = head // (Q_HEADS // KV_HEADS) * SPLITS + among // HEADS  # of an item's states

    total_m = tl.full([LANES], float("-inf"), tl.float32)
    total_z = tl.zeros([LANES], tl.float32)
    total_acc = tl.zeros([LANES, BLOCK_D], tl.float32)
    group_m, group_z, group_acc = total_m, total_z, total_acc
    for start in range(0, tl.max(count, 0), CHUNK):
        for i in tl.static_range(CHUNK):
            at = start + i
            more = at < count
            tail = at - before
            unit = tl.where(tail >= 0, shared + tail, at * step)
            item = tl.where(tail >= 0, tail_place // TILE + tail, first + at)
            place = tl.where(tail >= 0, tail_place % TILE, node) * HEADS + among % HEADS
            state = (item.to(tl.int64) * (KV_HEADS * SPLITS) + part) * (TILE * HEADS) + place
            m = tl.load(maxima + state, mask=more, other=float("-inf"))
            z = tl.load(sums + state, mask=more, other=0.0)
            where = state[:, None] * D + depth[None, :]
            acc = tl.load(parts + where, mask=more[:, None] & (depth < D)[None, :], other=0.0)
            # A state that begins a group closes the one before; either way there is one fold.
            opens = more & (unit % GROUP == 0)
            folded_m, folded_z, folded_acc = _fold(
                tl.where(opens, total_m, group_m),
                tl.where(opens, total_z, group_z),
                tl.where(opens[:, None], total_acc, group_acc),
                tl.where(opens, group_m, m),
                tl.where(opens, group_z, z),
                tl.where(opens[:, None], group_acc, acc),
                SCALE,
            )
            total_m = tl.where(opens, folded_m, total_m)
            total_z = tl.where(opens, folded_z, total_z)
            total_acc = tl.where(opens[:, None], folded_acc, total_acc)
            group_m = tl.where(opens, m, folded_m)
            group_z = tl.where(opens, z, folded_z)
            group_acc = tl.where(opens[:, None], acc, folded_acc)
    total_m, total_z, total_acc = _fold(total_m, total_z, total_acc, group_m, group_z, group_acc, SCALE)
    mean = total_acc / tl.where(total_z > 0, total_z, 1.0)[:, None]
    where = lane.to(tl.int64)[:, None] * D + depth[None, :]
    tl.store(out + where, mean.to(out.dtype.element_ty), mask=(row < rows)[:, None] & (depth < D)[None, :])


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
        return TILE * triton.next_power_of_2(-(-self.q_heads // self.kv_heads // self.splits))

    def attend(self) -> tuple[dict[str, Any], dict[str, int]]:
        """Constants and options of `_attend`."""
        constants = dict(**self._shared(), BLOCK=BLOCK_SIZE, SHIFT=BLOCK_SIZE.bit_length() - 1)
        # Units on their way while one is in use: enough bytes to hide the memory's latency where two programs share a
        # processor, and no more than its shared memory has room for. Each takes two stages, for its slots come first.
        # AMD's 64 KiB hold one unit.
        ahead = min(4, max(1, 65536 // (2 * UNIT * constants["BLOCK_D"] * self.stored.itemsize)))
        return constants, {"num_warps": 8 if self.lanes > 64 else 4, "num_stages": 2 if self.amd else 2 * ahead + 1}

    def combine(self) -> tuple[dict[str, Any], dict[str, int]]:
        return dict(**self._shared(), LANES=LANES, CHUNK=CHUNK), {"num_warps": LANES, "num_stages": 1}

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


def tree_attention(q: torch.Tensor, cache: PagedCache, layer: int, work: DeviceWork) -> torch.Tensor:
    """q [R, Hq, D], its last dimension dense -> [R, Hq * D] in q's dtype; D: multiples of 16 from 16 to 256.

    Rows whose position in work is -1 become zeros.
    """
    rows, q_heads, head_dim = q.shape
    k, v = cache.k[layer], cache.v[layer]
    scales = (None, None) if cache.k_scale is None else (cache.k_scale[layer], cache.v_scale[layer])
    kv_heads = k.shape[1]
    model = _Model(q_heads, kv_heads, head_dim, k.dtype, torch.version.hip is not None)
    programs = len(work.items) * kv_heads * model.splits
    maxima, sums = (torch.empty(programs, model.lanes, dtype=torch.float32, device=q.device) for _ in range(2))
    parts = torch.empty(programs, model.lanes, head_dim, dtype=torch.float32, device=q.device)
    constants, options = model.attend()
    _attend[(programs,)](
        q,
        k,
        v,
        *scales,
        work.items,
        work.positions,
        work.nodes,
        work.paths,
        work.tables,
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
    places = (work.spans, work.positions, work.span_of, work.tails)
    _combine[(triton.cdiv(rows * q_heads, LANES),)](*places, maxima, sums, parts, out, rows, **constants, **options)
    return out


def variants() -> list[Variant]:
    """The default model, shapes of 8B models and of one with as many key heads as query heads, and small caches."""
    models = {
        "9/3x64 bf16": (9, 3, 64, torch.bfloat16, torch.bfloat16),
        "32/8x128 bf16": (32, 8, 128, torch.bfloat16, torch.bfloat16),
        "32/8x128 f16": (32, 8, 128, torch.float16, torch.float16),
        "32/8x128 int8": (32, 8, 128, torch.bfloat16, torch.int8),
        "32/8x128 fp8": (32, 8, 128, torch.bfloat16, torch.float8_e4m3fn),
        "64/8x128 bf16": (64, 8, 128, torch.bfloat16, torch.bfloat16),
        "32/32x80 bf16": (32, 32, 80, torch.bfloat16, torch.bfloat16),
        "16/8x256 bf16": (16, 8, 256, torch.bfloat16, torch.bfloat16),
    }
    return [
        variant
        for name, (q_heads, kv_heads, head_dim, dtype, stored) in models.items()
        for amd in (False, True)
        for variant in _variants(f"{name}", _Model(q_heads, kv_heads, head_dim, stored, amd), POINTERS[dtype])
    ]


def _variants(name: str, model: _Model, dtype: str) -> list[Variant]:
    scaled = model.stored in LIMITS
    targets = ("gfx942",) if model.amd else ("sm_90",) if model.stored == torch.float8_e4m3fn else ("sm_80", "sm_90")
    scales = ("k_scale", "v_scale")
    constants, options = model.attend()
    stored = POINTERS[model.stored]
    integers = dict.fromkeys(("items", "positions", "nodes", "paths", "tables"), "*i32")
    states = dict.fromkeys(("maxima", "sums", "parts"), "*fp32")
    strides = dict.fromkeys(("row_stride", "head_stride"), "i32")
    types = {"q": dtype, "k": stored, "v": stored, **integers, **states, **strides}
    constants |= {} if scaled else dict.fromkeys(scales)
    types |= dict.fromkeys(scales, "*fp32") if scaled else {}
    aligned = tuple(name for name in types if name not in integers)
    suffix = " amd" if model.amd else ""
    found = [Variant(f"attend {name}{suffix}", _attend, types, constants, aligned, **options, targets=targets)]
    return found
