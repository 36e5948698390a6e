from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paceline.kernels.sample import Draw, reference
from paceline.kernels.sample.triton_impl import DrawTensors, sample, sample_rows

CPU = torch.device("cpu")
LAST_SEED = 2**64 - 1
COLUMNS = [1, 2, 37, 1001, 5000]


@st.composite
def draws(draw: st.DrawFn) -> Draw:
    """Half of them with filters, alone and together."""
    return Draw(
        seed=draw(st.one_of(st.integers(0, LAST_SEED), st.sampled_from([0, 2**32, LAST_SEED]))),
        position=draw(st.one_of(st.integers(0, 5000), st.sampled_from([2**32 - 1, 2**32, LAST_SEED]))),
        temperature=draw(st.sampled_from([0.0, 5e-324, 1e-3, 0.7, 1.0, 1.3, 20.0])),
        top_k=draw(st.sampled_from([0, 0, 0, 1, 5, 40, 3000, 2**40])),
        top_p=draw(st.sampled_from([1.0, 1.0, 1.0, 1e-12, 0.3, 0.9, 0.999])),
        min_p=draw(st.sampled_from([0.0, 0.0, 0.0, 1e-9, 0.05, 1.0])),
    )


def rows_of(rows: int, columns: int, spread: float, seed: int) -> NDArray[np.float32]:
    """Normal logits; of some rows a part ties, of some a part is masked."""
    random = np.random.default_rng(seed)
    logits = (random.standard_normal((rows, columns)) * spread).astype(np.float32)
    logits[::3, columns // 2 :] = np.round(logits[::3, columns // 2 :])
    logits[1::4, 1::2] = -np.inf
    return logits


def at_a_boundary(logits: NDArray[np.float32], draw: Draw) -> bool:
    """Whether a running sum of top-p comes within a millionth of p: then rounding decides what is kept."""
    if draw.temperature == 0.0 or draw.top_p == 1.0:
        return False
    scaled = np.sort(reference.divided(logits, draw.temperature))[::-1]
    if 0 < draw.top_k < scaled.size:
        scaled = scaled[: draw.top_k]
    shares = np.cumsum(np.exp((scaled - scaled[0]).astype(np.float64)))
    return bool((np.abs(shares / shares[-1] - draw.top_p) < 1e-6).any())


def check(logits: NDArray[np.float32], chosen: list[Draw]) -> None:
    got, want = sample(torch.from_numpy(logits), chosen), reference.sample(logits, chosen)
    for row, draw in enumerate(chosen):
        assert got[row] == want[row] or at_a_boundary(logits[row], draw), (row, draw)


@settings(max_examples=25)
@given(
    columns=st.sampled_from(COLUMNS),
    spread=st.sampled_from([0.0, 0.1, 2.0, 8.0, 1e4]),
    chosen=st.lists(draws(), min_size=1, max_size=3),
    seed=st.integers(0, 999),
)
def test_equals_the_reference(columns: int, spread: float, chosen: list[Draw], seed: int) -> None:
    check(rows_of(len(chosen), columns, spread, seed), chosen)


@pytest.mark.parametrize("columns", COLUMNS)
def test_equals_the_reference_in_a_full_batch(columns: int) -> None:
    """Every filter beside rows without any; the tile of 5,000 columns that ends the row is nearly empty."""
    kinds = [{}, {"top_k": 7}, {"top_p": 0.95}, {"min_p": 0.02}, {"top_k": 50, "top_p": 0.8, "min_p": 0.01}]
    temperatures = [0.0, 0.6, 1.0, 3.0]
    chosen = [Draw(row * 977, row, temperatures[row % 4], **kinds[row % 5]) for row in range(17)]
    check(rows_of(17, columns, 3.0, seed=columns), chosen)


@pytest.mark.parametrize("filters", [{"top_k": 4500}, {"top_p": 0.99}, {"min_p": 0.9}, {"top_k": 4999, "top_p": 0.97}])
def test_rows_with_more_candidates_than_a_list_holds_are_searched_as_a_whole(filters: dict[str, float]) -> None:
    flat = np.random.default_rng(1).standard_normal((2, 5000), np.float32) * np.float32(0.01)
    check(flat, [Draw(seed, 3, 1.0, **filters) for seed in range(2)])


@pytest.mark.parametrize("top_k", [1, 2, 50])
def test_a_likeliest_token_far_above_all_others_leaves_the_rest_in_order(top_k: int) -> None:
    """The noise of a high temperature brings up tokens that lie 40 nats below in the row."""
    logits = np.random.default_rng(2).standard_normal((1, 3000), np.float32) * 3
    logits[0, 1234] = 60.0
    check(logits, [Draw(9, 0, 15.0, top_k=top_k)])
    check(logits, [Draw(9, 1, 1.0, top_k=top_k, top_p=0.999)])


def test_ties_across_tiles_go_to_the_lower_id() -> None:
    logits = np.full((3, 5000), -1.0, np.float32)
    logits[:, [4990, 2050, 2049, 4000]] = 1e8
    chosen = [Draw(9, 9, 0.0), Draw(9, 9, 0.05), Draw(9, 9, 0.05, top_k=3)]
    assert sample(torch.from_numpy(logits), chosen) == [2049] * 3


@pytest.mark.parametrize("filters", [{"top_k": 4}, {"top_p": 0.3}, {"top_k": 9, "top_p": 0.4}], ids=str)
def test_ties_at_the_edge_of_a_filter_keep_the_lower_ids(filters: dict[str, float]) -> None:
    """All are equally likely: 4, 3 and 4 of them are kept."""
    flat = np.zeros((8, 10), np.float32)
    chosen = [Draw(5, position, 1.0, **filters) for position in range(8)]
    tokens = sample(torch.from_numpy(flat), chosen)
    assert tokens == reference.sample(flat, chosen)
    assert max(tokens) < 4


def test_zeros_of_either_sign_are_equal() -> None:
    logits = np.tile(np.array([0.0, -0.0, 0.0, -0.0, -1.0], np.float32), (6, 1))
    tokens = sample(torch.from_numpy(logits), [Draw(2, position, 1.0, top_k=2) for position in range(6)])
    assert set(tokens) == {0, 1}


def test_noise_makes_up_for_a_lead_exactly_as_far_as_it_reaches() -> None:
    """Two sums are closer than what the noise in float32 can tell: there the noise in float64 decides."""
    noise = reference.gumbel(np.arange(3000), 4, 8)
    for token in (7, 2047, 2999):
        logits = np.full((1, 3000), -100.0, np.float32)
        logits[0, [0, token]] = noise[token] - noise[0], 0.0
        for step in (-3, -1, 0, 1, 3):
            logits[0, 0] = np.float32(noise[token] - noise[0]) + np.float32(step * 1e-6)
            check(logits, [Draw(8, 4, 1.0)])


@pytest.mark.parametrize("extreme", [-np.inf, -3e38, 1e-42, 3e38])
def test_extreme_logits(extreme: float) -> None:
    logits = np.full((1, 40), extreme, np.float32)
    for temperature in (0.0, 1.0, 50.0):
        check(logits, [Draw(1, 2, temperature)])
    logits[0, 17] = 0.5
    for filters in ({}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.1}):
        if extreme != 3e38 or filters != {"top_p": 0.9}:  # weights of numbers so far apart are not the point
            check(logits, [Draw(1, 2, 1.0, **filters)])


def test_a_row_depends_on_no_other_and_rows_without_a_draw_are_left_out() -> None:
    logits = torch.from_numpy(rows_of(6, 2500, 3.0, seed=5))
    chosen = [
        Draw(1, 5, 1.0),
        None,
        Draw(2, 9, 0.7, top_k=30, top_p=0.9),
        Draw(3, 0, 0.0),
        None,
        Draw(4, 4, 2.0, 0, 0.8),
    ]
    together = sample_rows(logits, DrawTensors.of(chosen, CPU))
    assert together.dtype == torch.int32
    for row, draw in enumerate(chosen):
        alone = sample_rows(logits[row : row + 1], DrawTensors.of([draw], CPU))
        assert torch.equal(alone, together[row : row + 1])
        assert (int(alone) == -1) == (draw is None)
    shuffled = [5, 3, 1, 0, 2, 4]
    again = sample_rows(logits[shuffled], DrawTensors.of([chosen[row] for row in shuffled], CPU))
    assert torch.equal(again, together[shuffled])


def test_rows_may_be_views_or_none_and_those_of_the_host_are_sampled_there() -> None:
    logits = rows_of(4, 80, 3.0, seed=6)
    chosen = [Draw(7, row, 1.0) for row in range(4)]
    want = reference.sample(logits, chosen)
    assert sample(logits, chosen) == want
    wide = torch.from_numpy(np.concatenate((logits, logits), axis=1))
    assert sample(wide[:, :80], chosen) == sample(torch.from_numpy(logits.T.copy()).T, chosen) == want
    assert sample(torch.from_numpy(logits)[:0], []) == []
    with pytest.raises(ValueError, match="logits need one row per draw"):
        sample(torch.from_numpy(logits), chosen[:3])
