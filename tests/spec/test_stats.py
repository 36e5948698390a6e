from __future__ import annotations

import random

import pytest

from paceline.spec.merge import Vote
from paceline.spec.stats import Acceptance, Ratio, label


def vote(estimate: float, source: str = "draft", rank: int = 0) -> tuple[Vote, ...]:
    return (Vote(source, rank, estimate),)


def test_a_ratio_starts_at_one_and_goes_where_the_evidence_does() -> None:
    ratio = Ratio(prior=2.0, decay=0.9)
    assert ratio.value == 1.0
    ratio.add(0.0, 1.0)
    assert ratio.value == pytest.approx(2 / 3)
    for _ in range(200):
        ratio.add(3.0, 1.0)
    assert 2.5 < ratio.value < 3.0


def test_estimate_stands_until_something_was_seen() -> None:
    assert Acceptance().probability("s", 3, vote(0.37)) == 0.37


@pytest.mark.parametrize("estimate", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("truth", [0.0, 0.3, 0.9, 1.0])
def test_converges_to_what_is_seen(truth: float, estimate: float) -> None:
    acceptance, chance = Acceptance(), random.Random(4)
    for _ in range(2000):
        acceptance.observe("s", 1, vote(estimate), chance.random() < truth)
    assert acceptance.probability("s", 1, vote(estimate)) == pytest.approx(truth, abs=0.12)


def test_follows_a_change() -> None:
    acceptance = Acceptance()
    for accepted in (True, False):
        for _ in range(1000):
            acceptance.observe("s", 1, vote(0.5), accepted)
    assert acceptance.probability("s", 1, vote(0.5)) < 0.05


def test_one_verdict_moves_it_a_little_and_the_right_way() -> None:
    for accepted, low, high in ((True, 0.5, 0.8), (False, 0.25, 0.5)):
        acceptance = Acceptance()
        acceptance.observe("s", 1, vote(0.5), accepted)
        assert low < acceptance.probability("s", 1, vote(0.5)) < high


def test_twenty_wrong_guesses_are_enough_to_stop_believing() -> None:
    acceptance = Acceptance()
    for _ in range(20):
        acceptance.observe("s", 1, vote(0.9), False)
    assert acceptance.probability("s", 1, vote(0.9)) < 0.03


def test_a_drafter_that_is_wrong_is_believed_less_in_all_it_says_and_most_where_it_was_wrong() -> None:
    acceptance = Acceptance()
    for _ in range(50):
        acceptance.observe("s", 1, vote(0.55), False)
    here = acceptance.probability("s", 1, vote(0.58))  # the same bin
    for depth, other in ((2, vote(0.55)), (1, vote(0.75)), (1, vote(0.55, rank=1))):
        assert here < acceptance.probability("s", depth, other) < other[0].estimate / 2
    assert acceptance.probability("s", 1, vote(0.55, "suffix")) == 0.55


def test_a_sequence_leans_on_what_all_share_and_then_on_itself() -> None:
    acceptance = Acceptance()
    for _ in range(30):
        acceptance.observe("wrong", 1, vote(0.5), False)
        acceptance.observe("right", 1, vote(0.5), True)
    wrong, new, right = (acceptance.probability(name, 1, vote(0.5)) for name in ("wrong", "new", "right"))
    assert wrong < 0.15 < new < 0.7 < right
    acceptance.forget("wrong")
    assert acceptance.probability("wrong", 1, vote(0.5)) == new


def test_deep_guesses_and_late_siblings_share_what_is_known() -> None:
    acceptance = Acceptance()
    for _ in range(100):
        acceptance.observe("s", 9, vote(0.5, rank=5), False)
    known = acceptance.probability("s", 9, vote(0.5, rank=5))
    assert acceptance.probability("s", 30, vote(0.5, rank=30)) == known < 0.1


def test_those_who_agree_are_likelier_right_until_they_prove_not_to_be() -> None:
    both = (Vote("draft", 0, 0.4), Vote("suffix", 1, 0.5))
    acceptance = Acceptance()
    assert acceptance.probability("s", 1, both) == pytest.approx(1 - 0.6 * 0.5)
    chance = random.Random(1)
    believed = []
    for _ in range(3000):  # together they are no better than the first alone
        acceptance.observe("s", 1, both, chance.random() < 0.4)
        believed.append(acceptance.probability("s", 1, both))
    assert sum(believed[1000:]) / 2000 == pytest.approx(0.4, abs=0.05)
    assert label(both) == "draft+suffix"


def test_agreeing_with_one_who_is_always_wrong_changes_nothing() -> None:
    acceptance = Acceptance()
    for _ in range(60):
        acceptance.observe("s", 1, vote(0.9, "liar"), False)
    joint = acceptance.probability("s", 1, (Vote("honest", 0, 0.4), Vote("liar", 0, 0.9)))
    assert joint == pytest.approx(0.4, abs=0.02)


@pytest.mark.parametrize("accepted", [True, False])
def test_stays_a_probability_at_the_ends(accepted: bool) -> None:
    acceptance = Acceptance()
    for estimate in (0.0, 1.0):
        for _ in range(500):
            acceptance.observe("s", 1, vote(estimate), accepted)
            assert 0.0 <= acceptance.probability("s", 1, vote(estimate)) <= 1.0
