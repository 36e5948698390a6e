"""Triton implementation of `rank`: the best k of every tile of columns, then the best k of these."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from ..gpu.gumbel import divided, gumbel, placed, token_of, words
from ..gpu.nucleus import below
from ..gpu.transfer import upload
from ..gpu.variant import Variant
from ..sample import Draw, Logits
from ..sample.triton_impl import draw_arrays
from . import Vocabulary
from .reference import check
from .reference import rank as rank_on_host

_NOWHERE = tl.constexpr(-0x8000000000000000)  # below the place of any token

_TILE = 1024
_WARPS = 4
_MERGE_WARPS = 8
_MOST = 32  # ranks found on the device; who wants more waits for the whole rows anyway


@triton.jit(do_not_specialize=["ahead"])
def _rank_kernel(
    logits, stride, columns, vocabulary, seeds, positions, temperatures, each, ahead, best_places, best_values, tops,
    sums, tiles, k, TILE: tl.constexpr,
):  # fmt: skip
    """Of one tile: the k best places with their logits / T, the greatest of those, and the sum of exp(logits / T - it).

    `each` rows in turn have one draw, at consecutive positions from `ahead` after its own on.

    The noise needs no shortcut here: GPUs that compute in float64 at half the speed of float32 should hide it, and
    others should need some 10 us for a row of 32,000 columns (estimates).
    """
    row, tile = tl.program_id(0), tl.program_id(1)
    column = tile * TILE + tl.arange(0, TILE)
    mask = column < columns
    ids = column
    if vocabulary is not None:
        ids = tl.load(vocabulary + column, mask=mask, other=0)
    scaled = tl.load(logits + row.to(tl.int64) * stride + column, mask=mask, other=float("-inf")).to(tl.float32)
    noisy = scaled
    draw = row // each
    temperature = tl.load(temperatures + draw).to(tl.float32)
    if temperature > 0.0:
        scaled = divided(scaled, temperature)
        position = tl.load(positions + draw) + ahead + row % each
        noisy = scaled + gumbel(words(tl.load(seeds + draw), position, ids >> 2, ids & 3))
    top = tl.max(scaled)
    tl.store(tops + row * tiles + tile, top)
    tl.store(sums + row * tiles + tile, tl.sum(tl.where(mask, tl.exp(below(scaled, top)), 0.0)))
    places = tl.where(mask, placed(noisy, ids), _NOWHERE)
    first = (row * tiles + tile) * k
    for rank in range(k):
        place = tl.max(places)
        tl.store(best_places + first + rank, place)
        tl.store(best_values + first + rank, tl.max(tl.where(places == place, scaled, float("-inf"))))
        places = tl.where(places == place, _NOWHERE, places)


@triton.jit
def _merge_kernel(
    best_places, best_values, tops, sums, tiles, ranked, k, TILES: tl.constexpr, CANDIDATES: tl.constexpr
):
    """ranked: [2, k, rows], ids and then probabilities as the bits of float32."""
    row, rows = tl.program_id(0), tl.num_programs(0)
    tile = tl.arange(0, TILES)
    tile_tops = tl.load(tops + row * tiles + tile, mask=tile < tiles, other=float("-inf"))
    tile_sums = tl.load(sums + row * tiles + tile, mask=tile < tiles, other=0.0)
    top = tl.max(tile_tops)
    total = tl.sum(tile_sums * tl.exp(below(tile_tops, top)))
    index = tl.arange(0, CANDIDATES)
    mask = index < tiles * k
    places = tl.load(best_places + row * tiles * k + index, mask=mask, other=_NOWHERE)
    values = tl.load(best_values + row * tiles * k + index, mask=mask, other=float("-inf"))
    for rank in range(k):
        place = tl.max(places)
        value = tl.max(tl.where(places == place, values, float("-inf")))
        probability = tl.exp(below(value, top)) / total
        tl.store(ranked + rank * rows + row, token_of(place))
        tl.store(ranked + (k + rank) * rows + row, probability.to(tl.int32, bitcast=True))
        places = tl.where(places == place, _NOWHERE, places)


class _Vocabularies:
    """Vocabularies on devices, as int32: a drafter ranks with the same one at every step. An entry goes with its array,
    which must not be written to.
    """

    def __init__(self) -> None:
        self._moved: dict[tuple[int, torch.device], torch.Tensor] = {}

    def on(self, device: torch.device, vocabulary: Vocabulary) -> torch.Tensor:
        key = id(vocabulary), device
        if key not in self._moved:
            self._moved[key] = torch.from_numpy(vocabulary.astype(np.int32)).to(device)
            weakref.finalize(vocabulary, self._moved.pop, key, None)
        return self._moved[key]


_vocabularies = _Vocabularies()


def _sizes(columns: int, k: int) -> tuple[int, dict[str, int]]:
    """(tiles of a row, lanes of the program that merges them)."""
    tiles = triton.cdiv(columns, _TILE)
    lanes = {"TILES": triton.next_power_of_2(tiles), "CANDIDATES": triton.next_power_of_2(tiles * k)}
    return tiles, lanes


class DeviceDraws(NamedTuple):
    """Draws of R rows, as `DrawTensors` has them, without what `rank` ignores."""

    seed: torch.Tensor  # [R] int64, read as 64 bits
    position: torch.Tensor  # [R] int64, read as 64 bits
    temperature: torch.Tensor  # [R] float64


def noise_arrays(draws: Sequence[Draw]) -> list[NDArray[Any]]:
    """What `DeviceDraws` holds, in its order, on the host."""
    seed, position, _, temperature, *_ = draw_arrays(draws)
    return [seed, position, temperature]


def _ranked(logits: torch.Tensor, ids: torch.Tensor | None, noise: DeviceDraws, ahead: int, k: int) -> torch.Tensor:
    """[2, k, M] int32: tokens, and probabilities as the bits of float32."""
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    rows, columns = logits.shape
    device = logits.device
    ranked = torch.empty((2, k, rows), dtype=torch.int32, device=device)
    if rows:
        tiles, lanes = _sizes(columns, k)
        best = [torch.empty((rows, tiles, k), dtype=dtype, device=device) for dtype in (torch.int64, torch.float32)]
        best += [torch.empty((rows, tiles), dtype=torch.float32, device=device) for _ in range(2)]
        each = rows // len(noise.seed)
        _rank_kernel[(rows, tiles)](
            *(logits, logits.stride(0), columns, ids, *noise, each, ahead, *best, tiles, k),
            TILE=_TILE,
            num_warps=_WARPS,
        )
        _merge_kernel[(rows,)](*best, tiles, ranked, k, **lanes, num_warps=_MERGE_WARPS)
    return ranked


def rank(
    logits: Logits | NDArray[np.float32], vocabulary: Vocabulary | None, draws: Sequence[Draw], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Waits for the device once; rows that the host has are ranked there, and so are any where k is above 32."""
    if not isinstance(logits, torch.Tensor):
        return rank_on_host(logits, vocabulary, draws, k)
    if k > _MOST:
        return rank_on_host(logits.float().cpu().numpy(), vocabulary, draws, k)
    check(logits.shape, vocabulary, draws, k)
    device = logits.device
    ids = None if vocabulary is None else _vocabularies.on(device, vocabulary)
    noise = DeviceDraws(*upload(noise_arrays(draws), device))
    ranked = _ranked(logits, ids, noise, 0, k).cpu().numpy()
    return ranked[0].T.astype(np.int64), ranked[1].T.copy().view(np.float32)


def rank_rows(
    logits: torch.Tensor, vocabulary: torch.Tensor | None, draws: DeviceDraws, ahead: int, k: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The contract of `RankRows`; k is 32 at most."""
    ranked = _ranked(logits, vocabulary, draws, ahead, k)
    rows = len(draws.seed)
    # With one row for each draw these are views, whose columns are contiguous, as `embed` wants its ids.
    return ranked[0].t().reshape(rows, -1), ranked[1].view(torch.float32).t().reshape(rows, -1)


def variants() -> list[Variant]:
    """All of a model's tokens, after a pass, and a trimmed vocabulary, in one; the merge of the longest rows."""
    columns, k = 128_256, 8
    _, lanes = _sizes(columns, k)
    best = {"best_places": "*i64", "best_values": "*fp32", "tops": "*fp32", "sums": "*fp32", "tiles": "i32", "k": "i32"}
    row = {"stride": "i32", "columns": "i32", "vocabulary": "*i32"}
    noise = {"seeds": "*i64", "positions": "*i64", "temperatures": "*fp64", "each": "i32", "ahead": "i32"}
    made = []
    for name, logits, absent in (("whole", "*fp32", {"vocabulary": None}), ("trimmed", "*bf16", {})):
        types = {name: kind for name, kind in {"logits": logits, **row, **noise, **best}.items() if name not in absent}
        constants: dict[str, Any] = {**absent, "TILE": _TILE}
        aligned = tuple(argument for argument in types if argument not in ("tiles", "k", "each", "ahead"))
        made.append(Variant(name, _rank_kernel, types, constants, aligned, num_warps=_WARPS))
    types = {**best, "ranked": "*i32"}
    aligned = tuple(argument for argument in types if argument not in ("tiles", "k"))
    made.append(Variant("merge", _merge_kernel, types, dict(lanes), aligned, num_warps=_MERGE_WARPS))
    return made
