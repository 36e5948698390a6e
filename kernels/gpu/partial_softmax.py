"""Softmax over runs of keys, and the sums of such runs in order: the kernels of `tree_attention`.

A partial state of a row is (m, z, acc): the largest score, the sum of 2^(score - m) and the values weighted by the same
(FlashAttention, Dao et al., arXiv 2205.14135; split over keys as in Flash-Decoding, Dao et al., 2023). What an item is,
and what the integers mean, says `tree_attention/work.py`.
"""

from __future__ import annotations

import triton
import triton.language as tl


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
def attend(
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
def combine(
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
    AHEAD: tl.constexpr,
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
    for at in tl.range(0, tl.max(count, 0), num_stages=AHEAD):
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
