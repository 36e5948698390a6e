from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from paged_caches import filled

from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.triton_impl import PagedCache
from paceline.kernels.move_kv.triton_impl import MOVES, move_kv, move_slots

BLOCKS = 4
SLOTS = BLOCKS * 16
FORMS = ["auto", "f16", "int8", "fp8"]


def sides(cache: PagedCache) -> list[torch.Tensor]:
    """[layers, slots, Hkv, …] of everything that is kept, fp8 by its bits."""
    kept = [side for side in (cache.k, cache.v, cache.k_scale, cache.v_scale) if side is not None]
    return [(side.view(torch.int8) if side.itemsize == 1 else side).transpose(2, 3).flatten(1, 2) for side in kept]


def moved(before: list[torch.Tensor], source: list[int], target: list[int]) -> list[torch.Tensor]:
    """All at once: sources are read from what was there before."""
    after = [side.clone() for side in before]
    for old, new in zip(before, after, strict=True):
        for origin, place in zip(source, target, strict=True):
            new[:, place] = old[:, origin]
    return after


def assert_same(got: list[torch.Tensor], want: list[torch.Tensor]) -> None:
    assert len(got) == len(want)
    assert all(torch.equal(one, other) for one, other in zip(got, want, strict=True))


@settings(max_examples=25)
@given(
    moves=st.lists(
        st.tuples(st.integers(0, SLOTS - 1), st.integers(0, SLOTS - 1)), max_size=20, unique_by=lambda move: move[1]
    ),
    form=st.sampled_from(FORMS),
)
def test_reads_happen_before_writes(moves: list[tuple[int, int]], form: str) -> None:
    cache = filled(CacheShape(2, 2, 6), BLOCKS, torch.Generator().manual_seed(1), form=form)
    before = [side.clone() for side in sides(cache)]
    source, target = np.ascontiguousarray(np.array(moves, np.int64).reshape(-1, 2).T)
    move_kv(cache, source, target)
    assert_same(sides(cache), moved(before, source.tolist(), target.tolist()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("count", [1, 16, 17, MOVES, MOVES + 1, 3 * 64])
def test_any_number_of_moves(rng: torch.Generator, count: int, form: str) -> None:
    """More than a program holds go another way, with the same result: a permutation has every kind of cycle."""
    cache = filled(CacheShape(1, 1, 16), 12, rng, form=form)
    before = [side.clone() for side in sides(cache)]
    source, target = (torch.randperm(192, generator=rng)[:count].numpy() for _ in range(2))
    move_kv(cache, source, target)
    assert_same(sides(cache), moved(before, source.tolist(), target.tolist()))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_paths_of_several_sequences_and_padding(rng: torch.Generator, dtype: torch.dtype, form: str) -> None:
    """Accepted nodes 0, 2, 3, 5: what node 3 moves onto is what node 2 leaves. -1 on either side moves nothing."""
    cache = filled(CacheShape(3, 3, 20), BLOCKS, rng, form=form)
    before = [side.clone() for side in sides(cache)]
    rows = [
        ([-1, 16, 17, 19, -1], [-1, 15, 16, 17, -1]),  # across a page
        ([-1] * 5, [-1] * 5),
        ([40, 41, -1, 7, 45], [39, 40, 3, -1, 41]),
    ]
    source, target = (torch.tensor([row[side] for row in rows], dtype=dtype) for side in (0, 1))
    move_slots(cache, source, target)
    pairs = [pair for row in rows for pair in zip(*row, strict=True) if min(pair) >= 0]
    assert_same(sides(cache), moved(before, [pair[0] for pair in pairs], [pair[1] for pair in pairs]))


def test_a_row_of_one_move_and_one_of_most(rng: torch.Generator) -> None:
    cache = filled(CacheShape(1, 2, 8), 8, rng)
    before = [side.clone() for side in sides(cache)]
    move_slots(cache, torch.tensor([[9]]), torch.tensor([[100]]))
    assert_same(sides(cache), moved(before, [9], [100]))
    with pytest.raises(ValueError, match="at most 64 moves"):
        move_slots(cache, *torch.full((2, 1, MOVES + 1), -1))
