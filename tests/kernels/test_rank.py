from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paceline.kernels.backend import Ops
from paceline.kernels.rank.reference import rank_rows
from paceline.kernels.sample import Draw
from paceline.kernels.sample.reference import gumbel

LAST_SEED = 2**64 - 1
SIZES = [1, 2, 15, 16, 17, 63, 64, 65, 301, 4097]
POSITIONS = st.one_of(st.integers(0, 5000), st.sampled_from([2**32 - 1, 2**32, 2**64 - 1]))
SEEDS = st.one_of(st.integers(0, LAST_SEED), st.sampled_from([0, 1, 2**32, LAST_SEED]))


def expected(
    logits: NDArray[np.float32], vocabulary: NDArray[np.int64], draw: Draw, k: int
) -> tuple[list[int], NDArray[np.float64]]:
    """One row by the contract's words: sort everything, softmax in float64."""
    scaled = logits / np.float32(draw.temperature) if draw.temperature else logits
    keys = scaled + gumbel(vocabulary, draw.position, draw.seed) if draw.temperature else logits
    ranked = sorted(range(len(logits)), key=lambda i: (-float(keys[i]), int(vocabulary[i])))[:k]
    wide = logits.astype(np.float64) / (draw.temperature or 1.0)
    weights = np.exp(wide - wide.max())
    return vocabulary[ranked].tolist(), weights[ranked] / weights.sum()


def check(
    ops: Ops, logits: NDArray[np.float32], vocabulary: NDArray[np.int64] | None, draws: list[Draw], k: int
) -> None:
    ids = np.arange(logits.shape[1]) if vocabulary is None else vocabulary
    tokens, probabilities = ops.rank(logits, vocabulary, draws, k)
    assert (tokens.dtype, probabilities.dtype) == (np.int64, np.float32)
    assert tokens.shape == probabilities.shape == (len(logits), k)
    for row, draw in enumerate(draws):
        want, shares = expected(logits[row], ids, draw, k)
        assert tokens[row].tolist() == want, draw
        np.testing.assert_allclose(probabilities[row], shares, rtol=2e-4, atol=1e-7)


@settings(max_examples=80)
@given(
    columns=st.sampled_from(SIZES),
    k=st.sampled_from([1, 2, 4, 10, 64, 10_000]),
    temperature=st.sampled_from([0.0, 0.0, 1e-3, 0.3, 0.8, 1.0, 2.0, 50.0]),
    spread=st.sampled_from([0.0, 0.01, 1.0, 4.0, 100.0]),
    trimmed=st.booleans(),
    position=POSITIONS,
    seed=SEEDS,
)
def test_equals_the_formula_sorted(
    ops: Ops, columns: int, k: int, temperature: float, spread: float, trimmed: bool, position: int, seed: int
) -> None:
    """Over the whole row with no shortcut, in vocabularies that ascend and that do not. Some tie, some are masked."""
    random = np.random.default_rng([columns, k, seed % 97])
    logits = (random.standard_normal((2, columns)) * spread).astype(np.float32)
    logits[:, columns // 2 :][:, ::3] = logits[:, columns // 2 :][:, :1]
    logits[:, 1::7] = -np.inf
    vocabulary = random.permutation(10 * columns)[:columns] if trimmed else None
    draws = [Draw(seed, position, temperature), Draw(seed ^ 1, position, 0.7)]
    check(ops, logits, vocabulary, draws, min(k, columns))


@pytest.mark.parametrize("peak", [0.0, 5.0, 12.0, 25.0])
def test_ranks_by_noise_in_rows_as_a_model_makes_them(ops: Ops, peak: float) -> None:
    """A few likely tokens and thousands of unlikely ones, over temperatures where noise decides little or all."""
    random = np.random.default_rng(int(peak))
    vocabulary = np.sort(random.permutation(49_152)[:8001])
    logits = random.standard_normal((8, 8001), np.float32) * 2
    logits[:, random.permutation(8001)[:4]] += np.float32(peak)
    draws = [Draw(100 + row, 7 * row, (0.0, 0.05, 0.5, 0.8, 1.0, 1.3, 2.0, 30.0)[row]) for row in range(8)]
    for k in (1, 8, 40):
        check(ops, logits, vocabulary, draws, k)


def test_the_first_token_is_the_one_that_is_sampled(ops: Ops) -> None:
    random = np.random.default_rng(4)
    logits = random.standard_normal((40, 1003), np.float32) * 3
    for temperature in (0.0, 1e-30, 0.4, 1.0, 3.0):
        draws = [Draw(int(random.integers(2**63)), position, temperature) for position in range(40)]
        assert ops.rank(logits, None, draws, 5)[0][:, 0].tolist() == ops.sample(logits, draws)


def test_token_far_below_the_best_still_ranks_where_its_noise_says_so(ops: Ops) -> None:
    """Noise above 14 comes once in a million: found by search, so that a pruning bound that is too tight is seen."""
    seed = 5
    noise = gumbel(np.arange(4_000_000), 0, seed)
    lucky = int(noise.argmax())
    ids = np.array([0, 1, lucky])
    logits = np.array([[noise[lucky] - noise[0], -np.inf, 0]], np.float32)
    for lead, first in ((-0.01, lucky), (0.01, 0)):
        tokens, _ = ops.rank(logits + np.float32([lead, 0, 0]), ids, [Draw(seed, 0, 1.0)], 1)
        assert tokens.tolist() == [[first]]


def test_filters_are_ignored_and_rows_stand_alone(ops: Ops) -> None:
    logits = np.random.default_rng(1).standard_normal((6, 90), np.float32)
    draws = [Draw(row, 3, 0.5 * row) for row in range(6)]
    filtered = [Draw(row, 3, 0.5 * row, top_k=2, top_p=0.1, min_p=0.9) for row in range(6)]
    tokens, probabilities = ops.rank(logits, None, draws, 7)
    for got, want in zip(ops.rank(logits, None, filtered, 7), (tokens, probabilities), strict=True):
        assert np.array_equal(got, want)
    for row in range(6):
        alone = ops.rank(logits[row : row + 1], None, draws[row : row + 1], 7)
        assert np.array_equal(alone[0], tokens[row : row + 1])
        assert np.array_equal(alone[1], probabilities[row : row + 1])
    assert [part.shape for part in ops.rank(logits[:0], None, [], 3)] == [(0, 3), (0, 3)]


def test_what_does_not_fit_is_an_error(ops: Ops) -> None:
    logits, draw = np.zeros((1, 4), np.float32), Draw(0, 0, 1.0)
    for k in (0, 5, -1):
        with pytest.raises(ValueError, match="k must be between 1 and the number of columns"):
            ops.rank(logits, None, [draw], k)
    with pytest.raises(ValueError, match="logits need one row per draw"):
        ops.rank(logits, None, [draw] * 2, 1)
    with pytest.raises(ValueError, match="vocabulary must have 4 entries"):
        ops.rank(logits, np.arange(3), [draw], 1)


@pytest.mark.parametrize(("each", "ahead"), [(1, 0), (1, 2), (3, 0), (2, 5)])
def test_rows_of_a_pass_have_the_noise_of_their_own_positions(each: int, ahead: int) -> None:
    """Row i of a draw chooses the token that many places further on."""
    logits = np.random.default_rng(each).standard_normal((4 * each, 50), np.float32)
    draws = [Draw(row, 7 * row, 0.4 * row) for row in range(4)]
    tokens, probabilities = rank_rows(logits, np.arange(50) + 9, draws, ahead, 3)
    assert tokens.shape == probabilities.shape == (4, 3 * each)
    for row, draw in enumerate(draws):
        for i in range(each):
            moved = draw._replace(position=draw.position + ahead + i)
            want = expected(logits[row * each + i], np.arange(50) + 9, moved, 3)
            assert tokens[row, 3 * i : 3 * i + 3].tolist() == want[0]
            np.testing.assert_allclose(probabilities[row, 3 * i : 3 * i + 3], want[1], rtol=2e-4, atol=1e-7)
