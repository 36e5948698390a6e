"""The device's noise is the reference's, and what is computed in its place is near enough."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from paceline.kernels.gpu.gumbel import gumbel, near_gumbel, placed, token_of, words
from paceline.kernels.sample import reference

LAST = 2**64 - 1


@triton.jit
def _noise(seeds: Any, positions: Any, ids: Any, noise: Any, COUNT: tl.constexpr) -> None:  # noqa: N803
    lane = tl.arange(0, COUNT)
    token = tl.load(ids + lane)
    word = words(tl.load(seeds), tl.load(positions), token >> 2, token & 3)
    tl.store(noise + lane, gumbel(word))


@triton.jit
def _of_words(bits: Any, exact: Any, near: Any, COUNT: tl.constexpr) -> None:  # noqa: N803
    lane = tl.arange(0, COUNT)
    word = tl.load(bits + lane).to(tl.uint32, bitcast=True)
    tl.store(exact + lane, gumbel(word))
    tl.store(near + lane, near_gumbel(word))


@triton.jit
def _places(values: Any, ids: Any, places: Any, tokens: Any, COUNT: tl.constexpr) -> None:  # noqa: N803
    lane = tl.arange(0, COUNT)
    place = placed(tl.load(values + lane), tl.load(ids + lane))
    tl.store(places + lane, place)
    tl.store(tokens + lane, token_of(place))


@pytest.mark.parametrize("seed", [0, 1, 2**32, LAST])
@pytest.mark.parametrize("position", [0, 77, 2**32 - 1, 2**32, LAST])
def test_noise_is_the_references(seed: int, position: int) -> None:
    ids = np.random.default_rng(1).integers(0, 300_000, 256)
    key = torch.from_numpy(np.array([seed, position], np.uint64).view(np.int64))
    noise = torch.empty(256)
    _noise[(1,)](key[:1], key[1:], torch.from_numpy(ids.astype(np.int32)), noise, COUNT=256)
    assert np.array_equal(noise.numpy(), reference.gumbel(ids, position, seed))


def bits_of(tops: NDArray[np.int64]) -> torch.Tensor:
    return torch.from_numpy((tops << 8).astype(np.uint32).view(np.int32))


def test_what_stands_for_the_noise_in_float32_is_off_by_less_than_its_winners_are_told_apart_by() -> None:
    """Over the ends, where a rounded u says nothing, the change of formulas at 1 - 1/64, and everything between."""
    last, change = 2**24 - 1, 2**24 - 2**18
    ends = np.concatenate((np.arange(4096), last - np.arange(4096), change + np.arange(-2048, 2048)))
    tops = np.concatenate((ends, np.random.default_rng(2).integers(0, last, 2**16 - len(ends))))
    exact, near = torch.empty(2**16), torch.empty(2**16)
    _of_words[(1,)](bits_of(tops), exact, near, COUNT=2**16)
    u = (tops + 0.5) / 2.0**24
    assert np.array_equal(exact.numpy(), (-np.log(-np.log(u))).astype(np.float32))
    assert float((near - exact).abs().max()) < 2e-5


def test_places_order_tokens_by_value_and_id() -> None:
    values = np.array(
        [np.inf, 3e38, 1.0, 1.0, 1e-45, 0.0, -0.0, -1e-45, -1.0, -1.0, -3e38, -np.inf, -np.inf], np.float32
    )
    ids = np.array([5, 0, 7, 9, 2**31 - 2, 3, 4, 1, 0, 2**31 - 1, 6, 1, 8], np.int32)
    order = np.random.default_rng(3).permutation(13)
    padded = np.concatenate((order, [12, 12, 12]))
    places, tokens = torch.empty(16, dtype=torch.int64), torch.empty(16, dtype=torch.int32)
    _places[(1,)](torch.from_numpy(values[padded]), torch.from_numpy(ids[padded]), places, tokens, COUNT=16)
    assert order[np.argsort(-places[:13].numpy())].tolist() == list(range(13))
    assert np.array_equal(tokens.numpy(), ids[padded])
