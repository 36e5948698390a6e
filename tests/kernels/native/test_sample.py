"""Native sampling draws the reference's tokens, one for one; what both owe to the contract is in tests/kernels."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from paceline.kernels.native import isa
from paceline.kernels.sample import Draw
from paceline.kernels.sample.reference import sample

LAST_SEED = 2**64 - 1
FILTERS = [
    {},
    {"top_k": 40},
    {"top_p": 0.95},
    {"min_p": 0.05},
    {"top_k": 50, "top_p": 0.9},
    {"top_p": 0.5, "min_p": 0.2},
    {"top_k": 3, "top_p": 0.999, "min_p": 1e-4},
]


def native(module: ModuleType, logits: NDArray[np.float32], draws: list[Draw]) -> list[int]:
    chosen: list[int] = module.sample(
        logits, [(d.seed, d.position, d.temperature, d.top_k, d.top_p, d.min_p) for d in draws]
    )
    return chosen


@pytest.mark.parametrize("spread", [0.3, 2.0, 9.0])
def test_draws_the_reference_tokens(spread: float) -> None:
    """Over 2,000 draws of logits as a model makes them: a few likely tokens, thousands of unlikely ones."""
    random = np.random.default_rng(int(spread * 10))
    rows = 32
    different = 0
    for vocab in (17, 1000, 5003):
        for filters in FILTERS:
            logits = random.standard_normal((rows, vocab), np.float32) * np.float32(spread)
            logits[:, :: vocab // 7] += 3
            draws = [
                Draw(
                    seed=int(random.integers(0, LAST_SEED, dtype=np.uint64, endpoint=True)),
                    position=int(random.choice([0, 1, 4095, 2**31, 2**32, 2**32 + 5, 2**63])),
                    temperature=float(random.choice([0.05, 0.7, 1.0, 1.5, 4.0])),
                    **filters,  # type: ignore[arg-type]
                )
                for _ in range(rows)
            ]
            chosen = sample(logits, draws)
            for name in isa.supported():
                assert native(isa.load(name), logits, draws) == chosen, name
            different += sum(token != best for token, best in zip(chosen, logits.argmax(-1).tolist(), strict=True))
    assert different > 100, "greedy choices compare nothing"


@settings(max_examples=80)
@given(
    vocab=st.sampled_from([1, 2, 15, 16, 17, 64, 301]),
    levels=st.sampled_from([1, 2, 5]),
    temperature=st.sampled_from([0.0, 5e-324, 1e-46, 1e-39, 1e-20, 1e-10, 1e-3, 0.5, 1.0, 100.0]),
    top_k=st.sampled_from([0, 1, 2, 16, 10_000, 2**62]),
    top_p=st.sampled_from([1.0, 0.999999, 0.9, 0.5, 0.25, 1e-9, 0.0]),
    min_p=st.sampled_from([0.0, 1e-30, 0.1, 0.3678794411714423, 0.5, 1.0]),
    position=st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**64 - 1]),
    seed=st.sampled_from([0, 1, 2**32, 2**63, LAST_SEED]),
    masked=st.booleans(),
)
def test_draws_the_reference_tokens_among_ties_and_at_the_ends(
    vocab: int,
    levels: int,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    position: int,
    seed: int,
    masked: bool,
) -> None:
    """Whole numbers as logits: most of them tie, and sums and quotients fall on the filters' borders."""
    random = np.random.default_rng([vocab, levels, seed % 97])
    logits = random.integers(0, levels, (1, vocab)).astype(np.float32)
    if masked:
        logits[0, 1::3] = -np.inf
    draw = Draw(seed, position, temperature, top_k, top_p, min_p)
    for name in isa.supported():
        assert native(isa.load(name), logits, [draw]) == sample(logits, [draw]), name


def test_temperature_zero_takes_the_first_of_the_highest(module: ModuleType) -> None:
    for vocab in (1, 15, 16, 17, 33, 100):
        for at in range(0, vocab, 7):
            logits = np.zeros((1, vocab), np.float32)
            logits[0, at:] = 2.5
            assert native(module, logits, [Draw(0, 0, 0.0)]) == [at]
            logits[0, -1] = 2.5000002
            assert native(module, logits, [Draw(0, 0, 0.0)]) == [vocab - 1]


@pytest.mark.proof
@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_draws_the_reference_tokens_of_a_large_vocabulary(module: ModuleType, filters: dict[str, float]) -> None:
    logits = np.random.default_rng(2).standard_normal((200, 49_152), np.float32) * 3
    for position in range(5):
        draws = [Draw(seed, position, 0.8, **filters) for seed in range(200)]  # type: ignore[arg-type]
        assert native(module, logits, draws) == sample(logits, draws)
