from __future__ import annotations

import pytest

from paceline.spec.guard import Guard


def share_drafted(gain: float, sequences: int, steps: int = 2000) -> float:
    """Of steps that draft, where a drafting one makes `gain` times the tokens of a plain one in the same time."""
    guard, drafted = Guard(), 0
    for _ in range(steps):
        drafts = guard.drafts(sequences, True)
        guard.observe(sequences, drafts, round(100 * gain) if drafts else 100, 10.0)
        drafted += drafts
    return drafted / steps


@pytest.mark.parametrize("sequences", [2, 3, 8, 32])
def test_what_is_slower_is_only_tried(sequences: int) -> None:
    assert share_drafted(0.9, sequences) < 0.15  # with the first look at it
    assert share_drafted(1.1, sequences) > 0.95


def test_a_lone_sequence_is_always_drafted_for() -> None:
    assert share_drafted(0.5, 1) == 1.0


def test_it_changes_its_mind() -> None:
    guard = Guard()
    for gain, wanted in ((0.8, False), (1.3, True), (0.8, False)):
        last = []
        for _ in range(1500):
            drafts = guard.drafts(4, True)
            guard.observe(4, drafts, round(100 * gain) if drafts else 100, 10.0)
            last.append(drafts)
        assert (sum(last[-256:]) > 128) is wanted


def test_numbers_of_sequences_are_told_apart() -> None:
    guard = Guard()
    for _ in range(1000):
        for sequences, gain in ((2, 1.5), (16, 0.7)):
            drafts = guard.drafts(sequences, True)
            guard.observe(sequences, drafts, round(100 * gain) if drafts else 100, 10.0)
    assert guard.drafts(2, False)
    assert not guard.drafts(16, False)


def test_only_steps_that_are_measured_are_tried_and_counted() -> None:
    guard = Guard()

    def steps_until_trial() -> int:
        """Measured ones; between any two stand others."""
        for steps in range(1000):
            assert all(guard.drafts(4, False) for _ in range(300))
            if not guard.drafts(4, True):
                return steps
            guard.observe(4, True, 100, 10.0)
        raise AssertionError("never tried")

    assert steps_until_trial() == 12
    for _ in range(8):  # the trial goes on until it was seen, however many other steps come between
        assert not guard.drafts(4, True)
        guard.observe(4, False, 90, 10.0)
    assert steps_until_trial() == 248
