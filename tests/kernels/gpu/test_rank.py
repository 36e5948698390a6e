from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paceline.kernels.gpu.transfer import upload
from paceline.kernels.rank import reference
from paceline.kernels.rank.triton_impl import DeviceDraws, noise_arrays, rank, rank_rows
from paceline.kernels.sample import Draw
from paceline.kernels.sample.triton_impl import sample

LAST_SEED = 2**64 - 1


def check(logits: NDArray[np.float32], vocabulary: NDArray[np.int64] | None, draws: list[Draw], k: int) -> None:
    tokens, probabilities = rank(torch.from_numpy(logits), vocabulary, draws, k)
    want, shares = reference.rank(logits, vocabulary, draws, k)
    assert (tokens.dtype, probabilities.dtype) == (np.int64, np.float32)
    assert tokens.tolist() == want.tolist()
    np.testing.assert_allclose(probabilities, shares, rtol=2e-5, atol=1e-9)


@settings(max_examples=30)
@given(
    columns=st.sampled_from([1, 2, 37, 1001, 1024, 2500]),
    k=st.sampled_from([1, 2, 5, 16, 32, 40]),
    temperature=st.sampled_from([0.0, 1e-30, 1e-3, 0.8, 1.0, 50.0]),
    spread=st.sampled_from([0.0, 0.01, 3.0, 100.0]),
    trimmed=st.booleans(),
    position=st.sampled_from([0, 77, 2**32, LAST_SEED]),
    seed=st.integers(0, LAST_SEED),
)
def test_equals_the_reference(
    columns: int, k: int, temperature: float, spread: float, trimmed: bool, position: int, seed: int
) -> None:
    """In vocabularies that do not ascend, too. Some logits tie, some are masked."""
    random = np.random.default_rng([columns, k, seed % 97])
    logits = (random.standard_normal((2, columns)) * spread).astype(np.float32)
    logits[:, columns // 2 :][:, ::3] = logits[:, columns // 2 :][:, :1]
    logits[:, 1::7] = -np.inf
    vocabulary = random.permutation(10 * columns)[:columns] if trimmed else None
    check(logits, vocabulary, [Draw(seed, position, temperature), Draw(seed ^ 1, position, 0.7)], min(k, columns))


def test_rows_stand_alone_and_the_first_token_is_the_one_that_is_sampled() -> None:
    random = np.random.default_rng(4)
    logits = torch.from_numpy(random.standard_normal((7, 1500), np.float32) * 3)
    draws = [Draw(row, 3, 0.4 * row) for row in range(7)]
    tokens, probabilities = rank(logits, None, draws, 6)
    for row, draw in enumerate(draws):
        alone = rank(logits[row : row + 1], None, [draw], 6)
        assert np.array_equal(alone[0][0], tokens[row])
        assert np.array_equal(alone[1][0], probabilities[row])
    assert tokens[:, 0].tolist() == sample(logits, draws)


def test_rows_of_the_host_and_ranks_beyond_the_devices_are_found_on_the_host() -> None:
    logits = np.random.default_rng(5).standard_normal((2, 90), np.float32)
    draws = [Draw(1, 2, 1.0), Draw(1, 3, 0.0)]
    for rows in (logits, torch.from_numpy(logits)):
        for got, want in zip(rank(rows, None, draws, 80), reference.rank(logits, None, draws, 80), strict=True):
            assert np.array_equal(got, want)
    assert [part.shape for part in rank(torch.from_numpy(logits)[:0], None, [], 3)] == [(0, 3), (0, 3)]


def test_what_does_not_fit_is_an_error() -> None:
    logits, draw = torch.zeros(1, 4), Draw(0, 0, 1.0)
    for k in (0, 5, -1):
        with pytest.raises(ValueError, match="k must be between 1 and the number of columns"):
            rank(logits, None, [draw], k)
    with pytest.raises(ValueError, match="logits need one row per draw"):
        rank(logits, None, [draw] * 2, 1)
    with pytest.raises(ValueError, match="vocabulary must have 4 entries"):
        rank(logits, np.arange(3), [draw], 1)


def test_a_vocabulary_that_is_gone_is_not_taken_for_another() -> None:
    """A new array may stand where one that was freed stood."""
    logits = np.random.default_rng(6).standard_normal((1, 50), np.float32)
    for shift in range(5):
        vocabulary = np.arange(50) + 100 * shift
        check(logits, vocabulary, [Draw(1, 1, 1.0)], 4)
        check(logits, vocabulary, [Draw(1, 2, 1.0)], 4)
        del vocabulary
        gc.collect()


@pytest.mark.parametrize(
    ("dtype", "trimmed", "each", "ahead"), [(torch.float32, False, 1, 3), (torch.float16, True, 2, 1)]
)
def test_rows_of_a_pass_rank_at_the_positions_after_their_draws(
    dtype: torch.dtype, trimmed: bool, each: int, ahead: int
) -> None:
    random = np.random.default_rng(each)
    logits = torch.from_numpy(random.standard_normal((4 * each, 1100), np.float32) * 3).to(dtype)
    vocabulary = np.sort(random.permutation(9000)[:1100]) if trimmed else None
    draws = [Draw(LAST_SEED - 7, 2**32 - 2, 0.8), Draw(3, 17, 0.0), Draw(3, 17, 1e-30), Draw(2**63, 5, 1.3)]
    tokens, probabilities = rank_rows(
        logits,
        None if vocabulary is None else torch.from_numpy(vocabulary.astype(np.int32)),
        DeviceDraws(*upload(noise_arrays(draws), logits.device)),
        ahead,
        5,
    )
    want, shares = reference.rank_rows(logits.float().numpy(), vocabulary, draws, ahead, 5)
    assert tokens.tolist() == want.tolist()
    np.testing.assert_allclose(probabilities.numpy(), shares, rtol=2e-5, atol=1e-9)
    if each == 1:
        assert tokens[:, 0].is_contiguous()
