from __future__ import annotations

import random

import pytest

from paceline.spec.stats import Acceptance


def test_estimate_stands_until_something_was_seen() -> None:
    assert Acceptance().probability("ngram", 3, 0.37) == 0.37


@pytest.mark.parametrize("estimate", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("truth", [0.0, 0.3, 0.9, 1.0])
def test_converges_to_what_is_seen(truth: float, estimate: float) -> None:
    acceptance, chance = Acceptance(), random.Random(4)
    for _ in range(2000):
        acceptance.observe("ngram", 1, estimate, chance.random() < truth)
    assert acceptance.probability("ngram", 1, estimate) == pytest.approx(truth, abs=0.08)


def test_follows_a_change() -> None:
    acceptance = Acceptance()
    for accepted in (True, False):
        for _ in range(1000):
            acceptance.observe("ngram", 1, 0.5, accepted)
    assert acceptance.probability("ngram", 1, 0.5) < 0.05


def test_one_verdict_moves_it_a_little_and_the_right_way() -> None:
    for accepted, low, high in ((True, 0.5, 0.6), (False, 0.4, 0.5)):
        acceptance = Acceptance()
        acceptance.observe("ngram", 1, 0.5, accepted)
        assert low < acceptance.probability("ngram", 1, 0.5) < high


def test_drafters_depths_and_estimates_are_told_apart() -> None:
    acceptance = Acceptance()
    for _ in range(100):
        acceptance.observe("ngram", 1, 0.55, False)
    assert acceptance.probability("ngram", 1, 0.58) < 0.1  # the same bin
    for source, depth, estimate in (("suffix", 1, 0.55), ("ngram", 2, 0.55), ("ngram", 1, 0.75)):
        assert acceptance.probability(source, depth, estimate) == estimate


def test_deep_guesses_share_what_is_known() -> None:
    acceptance = Acceptance()
    for _ in range(100):
        acceptance.observe("ngram", 9, 0.5, False)
    assert acceptance.probability("ngram", 30, 0.5) < 0.1


@pytest.mark.parametrize("accepted", [True, False])
def test_stays_a_probability_at_the_ends(accepted: bool) -> None:
    acceptance = Acceptance()
    for estimate in (0.0, 1.0):
        for _ in range(500):
            acceptance.observe("ngram", 1, estimate, accepted)
            assert 0.0 <= acceptance.probability("ngram", 1, estimate) <= 1.0
