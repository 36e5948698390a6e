"""Native ranking gives the reference's tokens in every instruction set, and survives whatever it is given."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paceline.kernels.native import isa
from paceline.kernels.rank.reference import rank
from paceline.kernels.sample import Draw


def native(
    module: ModuleType, logits: NDArray[np.float32], vocabulary: NDArray[np.int64] | None, draws: list[Draw], k: int
) -> Any:
    fields = [(d.seed, d.position, d.temperature, d.top_k, d.top_p, d.min_p) for d in draws]
    return module.rank(logits, vocabulary, fields, k)


@pytest.mark.parametrize("spread", [0.3, 2.0, 9.0])
def test_ranks_the_reference_tokens(module: ModuleType, spread: float) -> None:
    random = np.random.default_rng(int(spread * 10))
    for columns in (17, 1000, 5003):
        for k in (1, 6, 17):
            logits = random.standard_normal((12, columns), np.float32) * np.float32(spread)
            logits[:, :: columns // 7] += 3
            vocabulary = random.permutation(50_000)[:columns]
            draws = [
                Draw(
                    seed=int(random.integers(0, 2**64 - 1, dtype=np.uint64, endpoint=True)),
                    position=int(random.choice([0, 1, 4095, 2**31, 2**32, 2**32 + 5, 2**63])),
                    temperature=float(random.choice([0.0, 0.05, 0.7, 1.0, 1.5, 4.0])),
                )
                for _ in range(12)
            ]
            for ids in (vocabulary, np.sort(vocabulary), None):
                tokens, probabilities = native(module, logits, ids, draws, k)
                wanted, shares = rank(logits, ids, draws, k)
                assert np.array_equal(tokens, wanted)
                np.testing.assert_allclose(probabilities, shares, rtol=5e-5, atol=1e-7)


@settings(max_examples=60)
@given(
    columns=st.sampled_from([1, 2, 15, 64, 65, 301]),
    levels=st.sampled_from([1, 2, 5]),
    scale=st.sampled_from([1.0, 1e-3, 1e6]),
    temperature=st.sampled_from([0.0, 5e-324, 1e-39, 1e-20, 1e-10, 1e-6, 1e-3, 0.5, 1.0, 1e4, 1e30]),
    k=st.sampled_from([1, 3, 16, 301]),
    masked=st.booleans(),
    seed=st.integers(0, 2**64 - 1),
)
def test_ranks_the_reference_tokens_among_ties_and_at_the_ends(
    columns: int, levels: int, scale: float, temperature: float, k: int, masked: bool, seed: int
) -> None:
    """Whole numbers as logits: many tie, and where they are large, noise is rounded away or to a few steps."""
    random = np.random.default_rng([columns, levels, seed % 97])
    logits = (random.integers(0, levels, (1, columns)) * scale).astype(np.float32)
    if masked and columns > 1:
        logits[0, 1::3] = -np.inf
    vocabulary = random.permutation(3 * columns)[:columns]
    draws, k = [Draw(seed, 5, temperature)], min(k, columns)
    for name in isa.supported():
        tokens, _ = native(isa.load(name), logits, vocabulary, draws, k)
        assert np.array_equal(tokens, rank(logits, vocabulary, draws, k)[0]), name


def test_what_does_not_fit_is_an_error(module: ModuleType) -> None:
    logits, ids, draw = np.zeros((1, 4), np.float32), np.arange(4), Draw(0, 0, 1.0)
    for wrong in (logits.astype(np.float64), np.zeros((1, 8), np.float32)[:, ::2]):
        with pytest.raises(TypeError, match="logits must be a contiguous array of float32"):
            native(module, wrong, ids, [draw], 1)
    for bad in (ids.astype(np.int32), ids.tolist()):
        with pytest.raises(TypeError, match="vocabulary must be a contiguous array of int64"):
            native(module, logits, bad, [draw], 1)
    with pytest.raises(ValueError, match="a token id is negative"):
        native(module, logits, np.array([0, 1, -1, 2]), [draw], 1)
    for sizes in ((1, 0), (2, 4)):
        with pytest.raises(ValueError, match="one row per draw"):
            native(module, np.zeros(sizes, np.float32), None, [draw], 1)
    with pytest.raises(ValueError, match="k must be between"):
        native(module, logits, None, [draw], 2**62)


@pytest.mark.parametrize("k", [1, 7, 3000])
def test_broken_logits_still_give_tokens(module: ModuleType, k: int) -> None:
    """NaN and infinities in any number: orders that contradict themselves would run a heap off its array."""
    random = np.random.default_rng(0)
    vocabulary = random.permutation(9000)[:3000]
    for share in (0.1, 0.5, 1.0):
        for value in (np.nan, np.inf, -np.inf):
            logits = random.standard_normal((1, 3000), np.float32)
            logits[random.random(logits.shape) < share] = value
            for temperature in (0.0, 1e-30, 1.0, np.inf, np.nan):
                tokens, _ = native(module, logits, vocabulary, [Draw(1, 2, temperature)], k)
                assert len(set(tokens[0].tolist()) & set(vocabulary.tolist())) == k
