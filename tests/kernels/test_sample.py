from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from paceline.kernels.backend import Ops
from paceline.kernels.sample import Draw
from paceline.kernels.sample.reference import gumbel, philox

LAST_SEED = 2**64 - 1
POSITIONS = st.one_of(st.integers(0, 5000), st.integers(0, 2**31))
SEEDS = st.one_of(st.integers(0, LAST_SEED), st.sampled_from([0, 1, 2**32, LAST_SEED]))


def philox_scalar(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """One block of Philox4x32-10 in plain integers, written from the paper's figure 2."""
    c, (k0, k1) = counter, key
    for _ in range(10):
        (high0, low0), (high1, low1) = divmod(0xD2511F53 * c[0], 2**32), divmod(0xCD9E8D57 * c[2], 2**32)
        c = (high1 ^ c[1] ^ k0, low1, high0 ^ c[3] ^ k1, low0)
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c


def noise_scalar(token: int, position: int, seed: int) -> float:
    """The contract's g(seed, position, v), in double precision."""
    group = token // 4
    counter = (position % 2**32, position // 2**32, group % 2**32, group // 2**32)
    word = philox_scalar(counter, (seed % 2**32, seed // 2**32))[token % 4]
    return -math.log(-math.log((word // 2**8 + 0.5) / 2**24))


def kept_scalar(scaled: list[float], top_k: int, top_p: float, min_p: float) -> list[int]:
    """Ids that the filters keep, by the contract's words: one token after another, likeliest first."""
    weights = [math.exp(value - max(scaled)) for value in scaled]
    ranked = sorted(range(len(scaled)), key=lambda v: (-scaled[v], v))[: top_k or None]
    total, reached, nucleus = math.fsum(weights[v] for v in ranked), 0.0, []
    for v in ranked:
        if reached >= top_p:
            break
        nucleus.append(v)
        reached += weights[v] / total
    return sorted(v for v in nucleus if weights[v] >= min_p)


# Known answers published with Random123: counter words, key words, result words, all low word first.
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN_ANSWERS)
def test_philox_gives_the_published_words(
    counter: tuple[int, int, int, int], key: tuple[int, int], words: tuple[int, int, int, int]
) -> None:
    """The counter is (position, group), 64 bits each, and the key is the seed."""
    group = np.array([counter[2] | counter[3] << 32], dtype=np.uint64)
    got = philox(group, position=counter[0] | counter[1] << 32, seed=key[0] | key[1] << 32)
    assert got.tolist() == [list(words)]
    assert philox_scalar(counter, key) == words


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=20), POSITIONS, SEEDS)
def test_noise_is_the_formula_whichever_ids_are_asked(tokens: list[int], position: int, seed: int) -> None:
    together = gumbel(np.array(tokens), position, seed)
    assert together.dtype == np.float32
    assert together.tolist() == [gumbel(np.array([token]), position, seed)[0] for token in tokens]
    for token, value in zip(tokens, together.tolist(), strict=True):
        assert value == pytest.approx(noise_scalar(token, position, seed), rel=1e-6, abs=1e-6)


def test_noise_follows_the_gumbel_law_and_stays_within_its_bounds() -> None:
    """The ends are compared exactly: there u is so close to 0 or 1 that how it is rounded shows."""
    noise = gumbel(np.arange(400_000), position=3, seed=11)
    for token in (int(noise.argmin()), int(noise.argmax())):
        assert noise[token] == pytest.approx(noise_scalar(token, 3, 11), rel=1e-6)
    assert stats.kstest(noise[::4], "gumbel_r").pvalue > 1e-4  # one word of each block
    assert stats.kstest(noise, "gumbel_r").pvalue > 1e-4
    assert noise.min() > -2.86
    assert noise.max() < 17.34


@settings(max_examples=60)
@given(
    vocab=st.sampled_from([1, 2, 3, 8, 63, 1001]),
    temperature=st.sampled_from([0.05, 0.3, 1.0, 2.0, 5.0]),
    spread=st.sampled_from([0.01, 1.0, 8.0, 500.0]),
    top_k=st.sampled_from([0, 0, 1, 2, 7, 10_000]),
    top_p=st.sampled_from([1.0, 1.0, 0.95, 0.5, 1e-9]),
    min_p=st.sampled_from([0.0, 0.0, 0.05, 0.5, 1.0]),
    position=POSITIONS,
    seed=SEEDS,
)
def test_equals_the_argmax_over_the_whole_vocabulary(
    ops: Ops,
    vocab: int,
    temperature: float,
    spread: float,
    top_k: int,
    top_p: float,
    min_p: float,
    position: int,
    seed: int,
) -> None:
    """The contract's formula with no shortcut: every kept token's logit / T plus noise. Some are masked, some tie."""
    random = np.random.default_rng([vocab, position])
    logits = (random.standard_normal(vocab) * spread).astype(np.float32)
    logits[vocab // 2 :][::3] = logits[vocab // 2 :][0]
    logits[1::5] = -np.inf
    scaled = logits / np.float32(temperature)
    kept = kept_scalar(scaled.tolist(), top_k, top_p, min_p)
    naive = scaled[kept] + gumbel(np.arange(vocab), position, seed)[kept]
    draw = Draw(seed, position, temperature, top_k, top_p, min_p)
    assert ops.sample(logits[None], [draw]) == [kept[int(naive.argmax())]]


def test_token_far_below_the_best_still_wins_where_its_noise_says_so(ops: Ops) -> None:
    """Noise above 14 comes once in a million: found by search, so that a pruning bound that is too tight is seen."""
    vocab, seed = 4_000_000, 5
    noise = gumbel(np.arange(vocab), 0, seed)
    lucky = int(noise.argmax())
    assert noise[lucky] > 13.5
    logits = np.full((1, lucky + 1), -np.inf, np.float32)
    logits[0, 0] = float(noise[lucky] - noise[0]) - 0.01  # token 0 leads by nearly as much as the noise can make up for
    logits[0, lucky] = 0.0
    assert ops.sample(logits, [Draw(seed, 0, 1.0)]) == [lucky]
    logits[0, 0] += 0.02
    assert ops.sample(logits, [Draw(seed, 0, 1.0)]) == [0]


LOGITS = [0.3, -1.0, 1.2, 0.3, -0.2, 2.0, -3.0, 0.9]
FILTERS: dict[str, dict[str, Any]] = {
    "plain": {},
    "top_k": {"top_k": 4},
    "top_p": {"top_p": 0.8},
    "min_p": {"min_p": 0.15},
    "all": {"top_k": 6, "top_p": 0.9, "min_p": 0.2},
}


def check_distribution(ops: Ops, name: str, count: int, seed: int) -> list[int]:
    """Chi-square of `count` successive positions of one reply against the filtered softmax; returns the tokens."""
    temperature, settings_ = 0.8, {"top_k": 0, "top_p": 1.0, "min_p": 0.0} | FILTERS[name]
    scaled = [value / temperature for value in LOGITS]
    kept = kept_scalar(scaled, **settings_)
    weights = [math.exp(scaled[v]) for v in kept]
    expected = [count * weight / math.fsum(weights) for weight in weights]
    rows = np.tile(np.array(LOGITS, np.float32), (count, 1))
    tokens = ops.sample(rows, [Draw(seed, position, temperature, **settings_) for position in range(count)])
    seen = np.bincount(tokens, minlength=len(LOGITS))
    assert seen.sum() == seen[kept].sum(), "a token that the filter drops was sampled"
    assert stats.chisquare(seen[kept], expected).pvalue > 1e-4
    return tokens


def test_samples_follow_the_softmax_and_successive_ones_are_independent(ops: Ops) -> None:
    tokens = check_distribution(ops, "plain", 20_000, seed=42)
    pairs = np.zeros((len(LOGITS), len(LOGITS)))
    np.add.at(pairs, (tokens[:-1], tokens[1:]), 1)
    common = [0, 2, 3, 5, 7]  # rare pairs would spoil the statistic
    assert stats.chi2_contingency(pairs[np.ix_(common, common)]).pvalue > 1e-4


@pytest.mark.parametrize("name", [name for name in FILTERS if name != "plain"])
def test_samples_follow_the_filtered_softmax(ops: Ops, name: str) -> None:
    check_distribution(ops, name, 4_000, seed=LAST_SEED)


@pytest.mark.proof
@pytest.mark.parametrize("seed", [0, 2**63])
@pytest.mark.parametrize("name", FILTERS)
def test_many_samples_follow_the_softmax(ops: Ops, name: str, seed: int) -> None:
    check_distribution(ops, name, 50_000, seed)


def test_neighbouring_seeds_and_positions_draw_differently(ops: Ops) -> None:
    flat = np.zeros((16, 1000), np.float32)
    by_seed = ops.sample(flat, [Draw(seed, 7, 1.0) for seed in range(16)])
    by_position = ops.sample(flat, [Draw(7, position, 1.0) for position in range(16)])
    for tokens in (by_seed, by_position):
        assert len(set(tokens)) >= 14
        assert 200 < statistics.mean(tokens) < 800


def test_row_never_depends_on_batch_mates(ops: Ops) -> None:
    logits = np.random.default_rng(20).standard_normal((6, 50), np.float32)
    draws = [
        Draw(1, 5, 1.0),
        Draw(1, 5, 0.0),
        Draw(2, 2**31, 0.7, top_k=3),
        Draw(LAST_SEED, 0, 1.5, top_p=0.7),
        Draw(0, 1, 2.0, min_p=0.1),
        Draw(0, 1, 0.0, top_k=1),
    ]
    together = ops.sample(logits, draws)
    assert together == [ops.sample(row[None], [draw])[0] for row, draw in zip(logits, draws, strict=True)]
    assert together[1] == int(logits[1].argmax())
    assert together[5] == int(logits[5].argmax())


@pytest.mark.parametrize("batch_mate", [Draw(0, 0, 0.0), Draw(0, 0, 1.0)], ids=["all greedy", "mixed"])
def test_greedy_ties_go_to_the_lower_id(ops: Ops, batch_mate: Draw) -> None:
    logits = np.full((2, 37), -1.0, np.float32)
    logits[:, [35, 20, 36]] = 4.0
    assert ops.sample(logits, [Draw(9, 9, 0.0), batch_mate])[0] == 20


@pytest.mark.parametrize("filters", [{}, {"top_k": 20}, {"top_p": 0.7}, {"min_p": 0.5}], ids=str)
def test_ties_of_the_noisy_sums_go_to_the_lower_id(ops: Ops, filters: dict[str, Any]) -> None:
    """Next to logits / T of 2e9 the noise is lost in the rounding: every sum is the same."""
    assert ops.sample(np.full((1, 37), 1e8, np.float32), [Draw(9, 9, 0.05, **filters)]) == [0]


def test_top_k_ties_keep_the_lower_ids(ops: Ops) -> None:
    logits = np.array([[0.0, 1.0, 0.0, 0.0, 1.0, 0.0]], np.float32)
    drawn = {ops.sample(logits, [Draw(3, position, 1.0, top_k=4)])[0] for position in range(200)}
    assert drawn == {0, 1, 2, 4}


def test_top_p_ties_keep_the_lower_ids(ops: Ops) -> None:
    drawn = {
        ops.sample(np.zeros((1, 8), np.float32), [Draw(3, position, 1.0, top_p=0.3)])[0] for position in range(200)
    }
    assert drawn == {0, 1, 2}


@pytest.mark.parametrize("filters", [{"top_k": 1}, {"top_p": 1e-12}, {"min_p": 1.0}])
def test_narrowest_filters_leave_the_likeliest(ops: Ops, filters: dict[str, Any]) -> None:
    logits = np.random.default_rng(20).standard_normal((20, 99), np.float32)
    draws = [Draw(8, position, 5.0, **filters) for position in range(20)]
    assert ops.sample(logits, draws) == logits.argmax(axis=-1).tolist()


def test_masked_tokens_never_come_and_huge_logits_win(ops: Ops) -> None:
    logits = np.full((1, 40), -np.inf, np.float32)
    logits[0, 33] = -1e4
    for filters in ({}, {"top_k": 5}, {"top_p": 0.99}, {"min_p": 0.01}):
        assert ops.sample(logits, [Draw(0, 1, 5.0, **filters)]) == [33]
    logits[0] = 0.0
    logits[0, 17] = 1e4
    assert ops.sample(logits, [Draw(0, 1, 5.0)]) == [17]


@pytest.mark.parametrize("temperature", [1e-3, 1e-10, 1e-39, 1e-46, 5e-324])
def test_tiny_temperatures_are_greedy(ops: Ops, temperature: float) -> None:
    """All of them are legal; below 1.2e-38 a quotient in float32 overflows or divides by zero."""
    logits = np.array([[1.0, 3.0, 2.0, 0.0, -1.0]], np.float32)
    assert ops.sample(logits, [Draw(7, 1, temperature)]) == [1]


def own(ops: Ops, rows: NDArray[np.float32]) -> Any:
    """Rows as a pass of the backend gives them."""
    return ops.constant(rows)


def test_the_host_sees_the_values_and_rewritten_rows_are_sampled_like_any(ops: Ops) -> None:
    rows = np.random.default_rng(4).standard_normal((5, 60), np.float32)
    logits, draws = own(ops, rows), [Draw(7, position, 1.0, top_p=0.9) for position in range(5)]
    assert np.array_equal(ops.host(logits[1:4]), rows[1:4])
    assert ops.host(logits).dtype == np.float32
    assert ops.sample(ops.host(logits).copy(), draws) == ops.sample(logits, draws)
