"""Triton implementation of `sample`.

Every row is cut into tiles of columns, each with a program of its own, which finds the tile's winner; a program per row
finds the winner of these. Values are exact and ties go by id, so neither the cut nor the order can be seen in a result.
A draw with filters needs two passes more, which its row alone takes part in: see `kernels/gpu/nucleus.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from ..gpu.gumbel import divided, greatest, noisiest, words
from ..gpu.nucleus import BOOKS, ROOM, filtered, shortlist, tally
from ..gpu.transfer import upload
from ..gpu.variant import Variant
from . import Draw, Logits
from .reference import COLDEST
from .reference import sample as sample_on_host

_NONE, _GREEDY, _PLAIN, _FILTERED = (tl.constexpr(kind) for kind in (-1, 0, 1, 2))

_TILE = 2048  # columns: 63 programs for a row of 128,256
_WARPS = 4
_SEARCH_TILE = 2048
_SEARCH_WARPS = 16


class DrawTensors(NamedTuple):
    """Draws of M rows on the device, M entries each.

    kind: int32, -1 where a row is not to be sampled, 0 greedy, 1 without filters, 2 with some. temperature: float64 of
    a float32 that can be divided by, or 0. log_min_p: the logarithm, -inf for none. filters: whether any row
    has some, known on the host: where none has, no kernel is launched for them.
    """

    seed: torch.Tensor  # int64, read as 64 bits
    position: torch.Tensor  # int64, read as 64 bits
    top_k: torch.Tensor  # int64
    temperature: torch.Tensor  # float64
    top_p: torch.Tensor  # float64
    log_min_p: torch.Tensor  # float64
    kind: torch.Tensor  # int32
    filters: bool

    @classmethod
    def of(cls, draws: Sequence[Draw | None], device: torch.device) -> Self:
        arrays = draw_arrays(draws)
        return cls.made_of(arrays, upload(arrays, device))

    @classmethod
    def made_of(cls, arrays: Sequence[NDArray[Any]], uploaded: Sequence[torch.Tensor]) -> Self:
        """Of what `draw_arrays` returned, and the same on the device."""
        return cls._make([*uploaded, bool((arrays[-1] == _FILTERED.value).any())])


def draw_arrays(draws: Sequence[Draw | None]) -> list[NDArray[Any]]:
    """What `DrawTensors` holds, in its order, on the host."""
    given = [draw or Draw(0, 0, 0.0) for draw in draws]
    wide = np.array([(draw.seed, draw.position) for draw in given], np.uint64).reshape(-1, 2).view(np.int64)
    real = np.array([(draw.temperature, draw.top_p, draw.min_p) for draw in given], np.float64).reshape(-1, 3)
    top_k = np.array([draw.top_k for draw in given], np.int64)
    narrowed = (top_k > 0) | (real[:, 1] < 1.0) | (real[:, 2] > 0.0)
    kind = np.where(real[:, 0] == 0.0, _GREEDY.value, np.where(narrowed, _FILTERED.value, _PLAIN.value))
    kind[[draw is None for draw in draws]] = _NONE.value
    with np.errstate(divide="ignore"):
        log_min_p = np.log(real[:, 2])
    divisor = np.maximum(real[:, 0], COLDEST).astype(np.float32)
    temperature = np.where(real[:, 0] == 0.0, 0.0, divisor.astype(np.float64))
    return [wide[:, 0], wide[:, 1], top_k, temperature, real[:, 1], log_min_p, kind.astype(np.int32)]


@triton.jit
def _tile_kernel(
    logits, stride, columns, seeds, positions, temperatures, kinds, best_values, best_ids, tiles, TILE: tl.constexpr
):
    """The winner of one tile of one row: of logits / T + g; of the logits for rows that are greedy or have filters."""
    row, tile = tl.program_id(0), tl.program_id(1)
    kind = tl.load(kinds + row)
    if kind != _NONE:
        # Four tokens of a group in one thread.
        group = tile * (TILE // 4) + tl.arange(0, TILE // 4)[:, None]
        lane = tl.arange(0, 4)[None, :]
        ids = group * 4 + lane
        mask = ids < columns
        values = tl.load(logits + row.to(tl.int64) * stride + ids, mask=mask, other=float("-inf"))
        if kind == _PLAIN:
            seed, position = tl.load(seeds + row), tl.load(positions + row)
            scaled = divided(values, tl.load(temperatures + row).to(tl.float32))
            word = words(seed, position, group, lane)
            value, token = noisiest(scaled, ids, mask, word, seed, position)
        else:
            value, token = greatest(values, ids, mask)
        tl.store(best_values + row * tiles + tile, value)
        tl.store(best_ids + row * tiles + tile, token)


@triton.jit
def _best_of(best_values, best_ids, row, tiles, TILES: tl.constexpr):
    tile = tl.arange(0, TILES)
    mask = tile < tiles
    values = tl.load(best_values + row * tiles + tile, mask=mask, other=float("-inf"))
    return greatest(values, tl.load(best_ids + row * tiles + tile, mask=mask, other=0), mask)


@triton.jit
def _survey_kernel(
    logits, stride, columns, temperatures, top_ks, top_ps, log_min_ps, kinds, best_values, best_ids, tiles, books,
    lists, LISTS: tl.constexpr, TILES: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Of rows with filters: adds a tile to the row's books or, with LISTS, to the list that the books allow."""
    row, tile = tl.program_id(0), tl.program_id(1)
    if tl.load(kinds + row) == _FILTERED:
        temperature = tl.load(temperatures + row).to(tl.float32)
        best, _ = _best_of(best_values, best_ids, row, tiles, TILES)
        top = divided(best, temperature)
        ids = tile * TILE + tl.arange(0, TILE)
        mask = ids < columns
        values = tl.load(logits + row.to(tl.int64) * stride + ids, mask=mask, other=float("-inf"))
        scaled = divided(values, temperature)
        books += row * BOOKS
        if LISTS:
            top_k, top_p = tl.load(top_ks + row), tl.load(top_ps + row)
            log_min_p = tl.load(log_min_ps + row)
            shortlist(scaled, top, ids, mask, books, lists + row * ROOM, columns, top_k, top_p, log_min_p)
        else:
            tally(scaled, top, mask, books)


@triton.jit
def _choose_kernel(
    logits, stride, columns, seeds, positions, temperatures, top_ks, top_ps, log_min_ps, kinds, best_values, best_ids,
    tiles, books, lists, tokens, FILTERS: tl.constexpr, TILES: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The token of one row from its tiles' winners, or from a search where it has filters."""
    row = tl.program_id(0)
    kind = tl.load(kinds + row)
    token = tl.full((), -1, tl.int32)
    if kind != _NONE:
        best, token = _best_of(best_values, best_ids, row, tiles, TILES)
        if FILTERS:  # noqa: SIM102, the search is compiled only where there are some
            if kind == _FILTERED:
                temperature = tl.load(temperatures + row).to(tl.float32)
                token = filtered(
                    logits + row.to(tl.int64) * stride, lists + row * ROOM, books + row * BOOKS, columns,
                    divided(best, temperature), tl.load(seeds + row), tl.load(positions + row), temperature,
                    tl.load(top_ks + row), tl.load(top_ps + row), tl.load(log_min_ps + row), TILE,
                )  # fmt: skip
    tl.store(tokens + row, token)


def _sizes(columns: int) -> tuple[int, int]:
    """(tiles of a row, lanes of a program that reads one winner of each)."""
    tiles = triton.cdiv(columns, _TILE)
    return tiles, triton.next_power_of_2(tiles)


def _choice(filters: bool) -> tuple[dict[str, Any], int]:
    """(constants, warps) of the program of a row."""
    return {"FILTERS": filters, "TILE": _SEARCH_TILE}, _SEARCH_WARPS if filters else 1


def sample_rows(logits: torch.Tensor, draws: DrawTensors) -> torch.Tensor:
    """Rows [M, V] and their draws -> int32 tokens [M], -1 where there is no draw. Does not wait for the device."""
    logits = logits.float()
    rows, columns = logits.shape
    if rows != len(draws.kind):
        raise ValueError("logits need one row per draw")
    tokens = torch.empty(rows, dtype=torch.int32, device=logits.device)
    if rows == 0:
        return tokens
    if logits.stride(1) != 1:
        logits = logits.contiguous()
    row = (logits, logits.stride(0), columns)
    tiles, lanes = _sizes(columns)
    best_values = torch.empty((rows, tiles), dtype=torch.float32, device=logits.device)
    best_ids = torch.empty((rows, tiles), dtype=torch.int32, device=logits.device)
    best = (best_values, best_ids, tiles)
    noise = (draws.seed, draws.position, draws.temperature)
    limits = (draws.top_k, draws.top_p, draws.log_min_p, draws.kind)
    _tile_kernel[(rows, tiles)](*row, *noise, draws.kind, *best, TILE=_TILE, num_warps=_WARPS)
    books = lists = None
    if draws.filters:
        books = torch.zeros((rows, BOOKS.value), dtype=torch.int64, device=logits.device)
        lists = torch.empty((rows, ROOM.value), dtype=torch.int32, device=logits.device)
        for listing in (False, True):
            _survey_kernel[(rows, tiles)](
                *row, draws.temperature, *limits, *best, books, lists,
                LISTS=listing, TILES=lanes, TILE=_TILE, num_warps=_WARPS,
            )  # fmt: skip
    constants, warps = _choice(draws.filters)
    _choose_kernel[(rows,)](
        *row, *noise, *limits, *best, books, lists, tokens, **constants, TILES=lanes, num_warps=warps
    )
    return tokens


def sample(logits: Logits | NDArray[np.float32], draws: Sequence[Draw]) -> list[int]:
    """Waits for the device once; rows that the host has are sampled there."""
    if not isinstance(logits, torch.Tensor):
        return sample_on_host(logits, draws)
    tokens: list[int] = sample_rows(logits, DrawTensors.of(draws, logits.device)).tolist()
    return tokens


def variants() -> list[Variant]:
    """Launches over rows of float32 logits: greedy and plain ones, and those with filters."""
    columns = 128_256
    _, lanes = _sizes(columns)
    row = {"logits": "*fp32", "stride": "i32", "columns": "i32"}
    noise = {"seeds": "*i64", "positions": "*i64", "temperatures": "*fp64"}
    limits = {"top_ks": "*i64", "top_ps": "*fp64", "log_min_ps": "*fp64", "kinds": "*i32"}
    best = {"best_values": "*fp32", "best_ids": "*i32", "tiles": "i32"}
    found = {"books": "*i64", "lists": "*i32"}
    aligned = tuple(name for name in {**row, **noise, **limits, **best, **found, "tokens": ""} if name != "tiles")

    def variant(name: str, kernel: Any, types: dict[str, str], constants: dict[str, Any], warps: int) -> Variant:
        mine = tuple(argument for argument in aligned if argument in types)
        return Variant(name, kernel, types, constants, mine, num_warps=warps)

    made = [variant("tiles", _tile_kernel, {**row, **noise, "kinds": "*i32", **best}, {"TILE": _TILE}, _WARPS)]
    for listing in (False, True):
        types = {**row, "temperatures": "*fp64", **limits, **best, **found}
        constants = {"LISTS": listing, "TILES": lanes, "TILE": _TILE}
        made.append(variant("shortlist" if listing else "tally", _survey_kernel, types, constants, _WARPS))
    for filters in (False, True):
        types = {**row, **noise, **limits, **best, **(found if filters else {}), "tokens": "*i32"}
        constants, warps = _choice(filters)
        absent: dict[str, Any] = {} if filters else dict.fromkeys(found)
        constants = {**constants, **absent, "TILES": lanes}
        made.append(variant("search" if filters else "choose", _choose_kernel, types, constants, warps))
    return made
