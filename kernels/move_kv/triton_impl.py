"""Triton implementation of `move_kv`: one launch moves all entries of all layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from ..gpu.transfer import upload
from ..gpu.variant import Variant
from ..kv_cache.triton_impl import LIMITS, POINTERS, PagedCache
from ..paging import BLOCK_SIZE

MOVES = 64  # of one sequence at most: what a program holds in registers between its reads and its writes
_FEW = 16  # the kernel for lists from the host is compiled for this many moves, and for powers of two above
_LANE = 128  # bytes that a thread holds: eight reads of 16 bytes in flight; a program of few warps ends at little cost


@triton.jit(do_not_specialize=["blocks"])
def _move(
    k, v, k_scale, v_scale, source, target, blocks,
    KV_HEADS: tl.constexpr, D: tl.constexpr, LENGTH: tl.constexpr, L: tl.constexpr, P: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Grid: layers times heads, and sequences. A program reads all its entries before it writes the first.

    L, P: powers of two that hold LENGTH moves and D channels.
    """
    moves = tl.arange(0, L)
    row = tl.program_id(1).to(tl.int64) * LENGTH
    to = tl.load(target + row + moves, mask=moves < LENGTH, other=-1).to(tl.int64)
    origin = tl.load(source + row + moves, mask=moves < LENGTH, other=-1).to(tl.int64)
    if tl.max(to, axis=0) >= 0:  # most steps move nothing
        moved = (to >= 0) & (origin >= 0)
        layer = (tl.program_id(0) // KV_HEADS).to(tl.int64)
        head = tl.program_id(0) % KV_HEADS
        reads = ((layer * blocks + origin // BLOCK) * KV_HEADS + head) * BLOCK + origin % BLOCK
        writes = ((layer * blocks + to // BLOCK) * KV_HEADS + head) * BLOCK + to % BLOCK
        lanes = tl.arange(0, P)
        mask = moved[:, None] & (lanes < D)[None, :]
        keys = tl.load(k + reads[:, None] * D + lanes[None, :], mask=mask)
        values = tl.load(v + reads[:, None] * D + lanes[None, :], mask=mask)
        if k_scale is not None:
            key_scales = tl.load(k_scale + reads, mask=moved)
            value_scales = tl.load(v_scale + reads, mask=moved)
        tl.debug_barrier()  # what one warp writes another may still have to read
        tl.store(k + writes[:, None] * D + lanes[None, :], keys, mask=mask)
        tl.store(v + writes[:, None] * D + lanes[None, :], values, mask=mask)
        if k_scale is not None:
            tl.store(k_scale + writes, key_scales, mask=moved)
            tl.store(v_scale + writes, value_scales, mask=moved)


def _constants(kv_heads: int, head_dim: int, length: int) -> dict[str, int]:
    return {
        "KV_HEADS": kv_heads,
        "D": head_dim,
        "LENGTH": length,
        "L": triton.next_power_of_2(length),
        "P": triton.next_power_of_2(head_dim),
        "BLOCK": BLOCK_SIZE,
    }


def _warps(constants: dict[str, int], dtype: torch.dtype) -> int:
    held = 2 * constants["L"] * constants["P"] * dtype.itemsize
    return max(1, min(16, held // (32 * _LANE)))


def move_slots(cache: PagedCache, source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy slot source[s, i] to slot target[s, i] in every layer; reads of a row happen before its writes.

    source, target: [S, L] int32 or int64, contiguous, on the cache's device, L at most MOVES; a negative entry in
    either means no move. A row reads and writes no slot that another row writes.
    """
    rows, length = source.shape
    if length > MOVES:
        raise ValueError(f"a row has at most {MOVES} moves, not {length}")
    layers, blocks, kv_heads, _, head_dim = cache.k.shape
    k, v = (side.view(torch.int8) if side.itemsize == 1 else side for side in (cache.k, cache.v))
    constants = _constants(kv_heads, head_dim, length)
    _move[(layers * kv_heads, rows)](
        *(k, v, cache.k_scale, cache.v_scale, source, target, blocks),
        **constants,
        num_warps=_warps(constants, k.dtype),
    )


def move_kv(cache: PagedCache, source: NDArray[np.int64], target: NDArray[np.int64]) -> None:
    count = len(source)
    if not count:
        return
    moves = np.full((2, 1, max(_FEW, triton.next_power_of_2(count))), -1, np.int64)
    moves[0, 0, :count] = source
    moves[1, 0, :count] = target
    ((origins, places),) = upload([moves], cache.k.device)
    if count <= MOVES:
        move_slots(cache, origins, places)
    else:
        _move_many(cache, origins[0, :count], places[0, :count])


def _move_many(cache: PagedCache, source: torch.Tensor, target: torch.Tensor) -> None:
    """Any number of moves [M], through a copy of what they read."""
    for pages in (cache.k, cache.v, cache.k_scale, cache.v_scale):
        if pages is not None:
            entries = pages.view(torch.int8) if pages.itemsize == 1 else pages
            entries[:, target // BLOCK_SIZE, :, target % BLOCK_SIZE] = entries[
                :, source // BLOCK_SIZE, :, source % BLOCK_SIZE
            ]


def variants() -> list[Variant]:
    cases = [
        ("smollm2", (3, 64), torch.bfloat16, 16),
        ("llama", (8, 128), torch.bfloat16, 16),
        ("llama", (8, 128), torch.bfloat16, MOVES),
        ("llama", (8, 128), torch.int8, 16),
    ]
    return [_variant(*case) for case in cases]


def _variant(model: str, shape: tuple[int, int], stored: torch.dtype, length: int) -> Variant:
    pages = POINTERS[stored]
    constants: dict[str, Any] = _constants(*shape, length)
    types = {"k": pages, "v": pages, "source": "*i32", "target": "*i32"}
    scales = ("k_scale", "v_scale")
    if stored in LIMITS:
        types |= dict.fromkeys(scales, "*fp32")
    else:
        constants |= dict.fromkeys(scales)
    return Variant(
        name=f"{model} {pages[1:]} {length}",
        kernel=_move,
        types=types | {"blocks": "i32"},
        constants=constants,
        aligned=tuple(types),
        num_warps=_warps(constants, stored),
    )
