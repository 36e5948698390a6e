from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from math import exp, log

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.spec.cost import CostCurve, StepCost, Work

POINTS = st.dictionaries(st.integers(1, 64), st.floats(0.01, 100), min_size=1, max_size=7)
REAL = {1: 5.1, 2: 5.4, 4: 6.5, 8: 8.6, 16: 15.0, 64: 56.0}  # a small model on two cores
READ_MS, SEEN_MS = 0.001, 0.0007  # there: of a key, once and for each row


# The curve


def test_goes_through_its_points_and_straight_between_them() -> None:
    curve = CostCurve({4: 3.0, 8: 5.0, 16: 9.0})
    assert [curve.cost(rows) for rows in (0, 1, 4)] == [3.0, 3.0, 3.0]
    assert [curve.cost(rows) for rows in (5, 6, 8, 12, 16)] == [3.5, 4.0, 5.0, 7.0, 9.0]
    assert [curve.cost(rows) for rows in (32, 160)] == [18.0, 90.0]


@pytest.mark.parametrize("points", [{}, {0: 1.0}, {-1: 1.0, 2: 3.0}, {1: 0.0}, {1: 2.0, 4: -1.0}])
def test_curve_needs_positive_points(points: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        CostCurve(points)


def assert_never_falls(curve: Sequence[float]) -> None:
    assert all(low <= high * (1 + 1e-12) for low, high in pairwise(curve))
    assert curve[0] > 0


@given(POINTS, st.integers(1, 130), st.floats(0.3, 3))
def test_moves_as_far_as_it_was_told_and_not_further(points: dict[int, float], rows: int, factor: float) -> None:
    curve = CostCurve(points)
    before = curve.cost(rows)
    curve.move((rows, log(factor)))
    low, high = sorted((before, before * factor))
    assert low * (1 - 1e-9) <= curve.cost(rows) <= high * (1 + 1e-9)


def test_far_points_stay_where_they_are() -> None:
    curve = CostCurve({1: 3.0, 2: 3.0, 32: 20.0, 64: 40.0})
    curve.move((1, log(1.1)))
    assert curve.cost(64) == 40.0
    assert curve.cost(1) == pytest.approx(3.3)


def test_point_below_a_hiccup_keeps_what_was_measured_there() -> None:
    """Single rows look slow for a while, so steps of 8 are known to cost less than the curve, which never falls, can
    say. Once single rows are seen to be fast again, 8 rows cost what they always did.
    """
    curve = CostCurve({1: 3.0, 4: 3.0, 8: 5.0, 16: 9.0})
    for truth in (8.0, 3.0):
        for _ in range(200):
            for rows, ms in ((1, truth), (8, 5.0)):
                curve.move((rows, 0.1 * log(ms / curve.cost(rows))))
    assert curve.cost(1) == pytest.approx(3.0, rel=0.02)
    assert curve.cost(8) == pytest.approx(5.0, rel=0.05)


# The model


def test_work_counts_keys_once_for_a_sequence_and_once_for_each_row() -> None:
    assert Work(0).beside(100, 1) == Work(1, 101, 101)
    assert Work(0).beside(100, 3) == Work(3, 103, 101 + 102 + 103)
    assert Work(0).beside(100, 1).beside(0, 2) == Work(3, 103, 104)


def test_a_step_is_the_curve_and_its_keys() -> None:
    cost = StepCost({1: 3.0, 9: 7.0}, 0.01, 0.001)
    assert cost.ms(Work(5, 100, 1000)) == pytest.approx(5.0 + 1.0 + 1.0)
    assert cost.by_rows(9)[:10] == [3.0, *(3.0 + 0.5 * i for i in range(9))]


def test_keys_are_measured_with_few_rows_and_with_many() -> None:
    truth = StepCost(REAL, READ_MS, SEEN_MS)
    behind = {rows: truth.ms(Work(rows, 512, 512 * rows)) for rows in (1, 8)}
    cost = StepCost.measured(REAL, 512, behind)
    for work in (Work(1, 1000, 1000), Work(16, 2000, 30_000)):
        assert cost.ms(work) == pytest.approx(truth.ms(work))
    disturbed = StepCost.measured(REAL, 512, {1: 4.0, 8: 5.0})
    assert disturbed.ms(Work(8, 1000, 8000)) > disturbed.ms(Work(8)), "keys are never free, however they look"


WORK = st.builds(lambda rows, context: Work(0).beside(context, rows), st.integers(1, 64), st.integers(0, 4000))


@given(POINTS, st.lists(st.tuples(WORK, st.just(0.0) | st.floats(1e-6, 1000)), max_size=20))
def test_never_falls_whatever_is_observed(points: dict[int, float], observed: list[tuple[Work, float]]) -> None:
    cost = StepCost(points, READ_MS, SEEN_MS)
    for work, ms in observed:
        cost.observe(work, ms)
        assert_never_falls(cost.by_rows(140))
        assert cost.by_rows(10)[work.rows] == pytest.approx(cost.ms(Work(work.rows)))
        assert cost.seen_ms > 0


def observe(cost: StepCost, truth: StepCost, works: Sequence[Work], pace: float = 1.0) -> None:
    for work in works:
        cost.observe(work, pace * truth.ms(work))


def shape(cost: StepCost, *works: Work) -> list[float]:
    """What they cost, as multiples of the first."""
    return [cost.ms(work) / cost.ms(works[0]) for work in works]


def misjudged(cost: StepCost, truth: StepCost) -> float:
    """How far off the model is in what decides: what more rows cost behind the same keys."""
    pairs = ((USUAL[0], USUAL[1]), (USUAL[0], USUAL[2]), (USUAL[3], USUAL[4]))
    return max(abs(shape(cost, *pair)[1] / shape(truth, *pair)[1] - 1) for pair in pairs)


USUAL = (Work(1, 100, 100), Work(4, 100, 400), Work(8, 100, 800), Work(1, 1500, 1500), Work(8, 1500, 12_000))


@pytest.mark.parametrize("off", [0.6, 1.5])
def test_the_pace_is_followed_within_twenty_steps_and_the_shape_stays(off: float) -> None:
    cost, truth = StepCost(REAL, READ_MS, SEEN_MS), StepCost(REAL, READ_MS, SEEN_MS)
    chance = random.Random(1)
    observe(cost, truth, [chance.choice(USUAL) for _ in range(20)], off)
    assert cost.ms(Work(1)) == pytest.approx(off * truth.ms(Work(1)), rel=0.05)
    assert shape(cost, *USUAL) == pytest.approx(shape(truth, *USUAL), rel=0.02)


@given(st.sampled_from(USUAL), st.sampled_from([50.0, 1e6]))
def test_a_hiccup_moves_the_pace_by_little_and_the_shape_by_less(work: Work, ms: float) -> None:
    cost, truth = StepCost(REAL, READ_MS, SEEN_MS), StepCost(REAL, READ_MS, SEEN_MS)
    observe(cost, truth, USUAL)
    cost.observe(work, ms)
    assert cost.ms(USUAL[0]) == pytest.approx(truth.ms(USUAL[0]), rel=0.05)
    observe(cost, truth, USUAL)
    assert shape(cost, *USUAL) == pytest.approx(shape(truth, *USUAL), rel=0.03)


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_long_contexts_and_slow_minutes_leave_the_shape_as_it_is(seed: int) -> None:
    """Steps of 8 rows come with long contexts and while the machine is slow, those of one row with short ones."""
    cost, truth = StepCost(REAL, READ_MS, SEEN_MS), StepCost(REAL, READ_MS, SEEN_MS)
    chance = random.Random(seed)
    for prompt in range(40):
        slow = prompt % 2 == 1
        keys = chance.randint(800, 1800) if slow else chance.randint(30, 200)
        pace = chance.uniform(1.2, 1.5) if slow else chance.uniform(0.9, 1.1)
        for step in range(60):
            work = Work(0).beside(keys + step, chance.choice((1, 4, 8, 8) if slow else (1, 1, 1, 4)))
            hiccup = 2.0 if chance.random() < 0.03 else 1.0
            cost.observe(work, pace * hiccup * chance.gauss(1, 0.07) * truth.ms(work))
    assert misjudged(cost, truth) < 0.12


@pytest.mark.parametrize(
    "wrong",
    [
        StepCost({1: 5.1, 2: 5.4, 4: 6.5, 8: 11.0, 16: 15.0, 64: 56.0}, READ_MS, SEEN_MS),
        StepCost(REAL, 2 * READ_MS, 0.5 * SEEN_MS),
        StepCost(REAL, READ_MS, 2 * SEEN_MS),
    ],
    ids=["curve", "less seen", "more seen"],
)
def test_a_shape_that_was_measured_wrongly_is_set_right(wrong: StepCost) -> None:
    truth, chance = StepCost(REAL, READ_MS, SEEN_MS), random.Random(2)

    before = misjudged(wrong, truth)
    for _ in range(12):  # contexts, as they grow
        keys = chance.randint(50, 1500)
        steps = [Work(0).beside(keys + step, chance.choice((1, 1, 4, 8))) for step in range(100)]
        observe(wrong, truth, steps, exp(chance.uniform(-0.2, 0.2)))
    assert misjudged(wrong, truth) < min(0.7 * before, 0.17)


def test_steps_of_one_kind_say_nothing_about_the_shape() -> None:
    """They jitter, and their keys grow as a stream's do."""
    cost, chance = StepCost(REAL, READ_MS, SEEN_MS), random.Random(3)
    before = shape(cost, *USUAL)
    for step in range(500):
        cost.observe(Work(0).beside(100 + step, 1), 9.0 * chance.gauss(1, 0.1))
    assert shape(cost, *USUAL) == pytest.approx(before)


def test_what_two_steps_disagree_about_does_not_lift_points_below_a_hiccup() -> None:
    curve, chance = CostCurve({1: 5.0, 2: 8.0, 4: 5.2, 8: 9.0}), random.Random(4)
    for _ in range(1000):
        by = chance.gauss(0, 0.05)
        curve.move((4, -by), (4, by))
    curve.move((2, log(5.1 / 8)))
    assert curve.cost(4) == pytest.approx(5.2, rel=0.05)


def test_a_step_after_a_pause_is_not_compared_with_the_one_before() -> None:
    """The machine may have another pace by then."""
    now = 0.0
    cost = StepCost(REAL, READ_MS, SEEN_MS, clock=lambda: now)
    before = shape(cost, *USUAL)
    for work in USUAL * 20:
        now += 10
        cost.observe(work, 7.0)
    assert shape(cost, *USUAL) == pytest.approx(before)


def test_a_token_costs_what_the_rows_of_the_last_step_look_at() -> None:
    cost = StepCost(REAL, READ_MS, SEEN_MS)
    assert cost.token_ms == cost.ms(Work(1))
    cost.observe(Work(8, 1000, 8000), cost.ms(Work(8, 1000, 8000)))
    assert cost.token_ms == pytest.approx(cost.ms(Work(1, 1000, 1000)))


# Rows of a prompt that fit


def test_rows_within_takes_the_whole_of_a_flat_stretch() -> None:
    cost = StepCost({1: 3.0, 4: 3.0, 8: 6.0})
    assert [cost.rows_within(ms, Work(1), 0, 9) for ms in (2.9, 3.0, 6.0, 1000.0)] == [0, 3, 7, 9]


@given(POINTS, st.floats(0.01, 400), st.integers(0, 3000), st.integers(0, 200))
def test_rows_within_is_the_largest_count_that_fits(
    points: dict[int, float], ms: float, context: int, most: int
) -> None:
    cost, streams = StepCost(points, READ_MS, SEEN_MS), Work(2, 60, 60)
    rows = cost.rows_within(ms, streams, context, most)
    assert 0 <= rows <= most
    assert rows == 0 or cost.ms(streams.beside(context, rows)) <= ms
    assert rows == most or cost.ms(streams.beside(context, rows + 1)) > ms * (1 - 1e-12)
