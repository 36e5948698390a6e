from __future__ import annotations

import pytest

from paceline.spec.gain import Gain


def test_an_unknown_drafter_is_given_a_chance() -> None:
    gain = Gain()
    assert gain.pays("dear", 1.0, [("s", 0.0)], rate=0.5, step_ms=2.0)
    assert not gain.pays("dear", 9.0, [("s", 0.0)], rate=0.5, step_ms=2.0)  # nor more than could come of it
    assert gain.pays("dear", 9.0, [(str(i), 0.0) for i in range(8)], rate=0.5, step_ms=2.0)  # one pass for all of them


@pytest.mark.parametrize("gained", [0.0, 0.3, 2.5])
def test_expects_what_was_gained(gained: float) -> None:
    gain = Gain()
    for _ in range(100):
        gain.observe("dear", "s", 0.2, gained)
    assert gain.expected("dear", "s", 0.2) == pytest.approx(gained, abs=0.15)
    assert gain.expected("dear", "new", 0.2) == pytest.approx(gained, abs=0.3)
    assert gain.expected("other", "new", 0.2) == 1.0


def test_what_is_expected_without_it_makes_a_difference() -> None:
    gain = Gain()
    for i in range(50):
        gain.observe("dear", str(i), 0.0, 1.5)
        gain.observe("dear", str(i), 2.6, 0.0)
    assert gain.expected("dear", "new", 0.3) > 1.3
    assert gain.expected("dear", "new", 2.9) < 0.2


def test_what_does_not_pay_is_tried_in_a_hundredth_of_the_time() -> None:
    gain = Gain()
    for _ in range(100):
        gain.observe("dear", "s", 0.0, 0.0)
    tried = 0
    for _ in range(1000):
        if gain.pays("dear", 1.0, [("s", 0.0)], rate=0.5, step_ms=2.0):
            gain.observe("dear", "s", 0.0, 0.0)
            tried += 1
    assert 14 <= tried <= 20  # asking takes somewhat more than the drafter's own time


def test_a_trial_lasts_until_the_drafter_has_caught_up() -> None:
    gain = Gain()

    def pays(seq_id: str) -> bool:
        return gain.pays("dear", 1.0, [(seq_id, 0.0)], rate=0.5, step_ms=2.0)

    for _ in range(100):
        gain.observe("dear", "s", 0.0, 0.0)
    while not pays("s"):
        pass
    assert [pays("s") for _ in range(10)] == [True] * 10
    assert not pays("t"), "another sequence is none of its business"
    gain.observe("dear", "s", 0.0, 0.0)
    refused = 0
    while not pays("s"):
        refused += 1
    assert refused > 700, "all of it is paid for"


def test_a_sequence_that_is_gone_is_as_new() -> None:
    gain = Gain()
    for _ in range(20):
        gain.observe("dear", "bad", 0.0, 0.0)
        gain.observe("dear", "good", 0.0, 2.0)
    assert gain.expected("dear", "bad", 0.0) < gain.expected("dear", "new", 0.0) < gain.expected("dear", "good", 0.0)
    gain.forget("bad")
    assert gain.expected("dear", "bad", 0.0) == gain.expected("dear", "new", 0.0)
