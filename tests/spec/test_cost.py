from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.spec.cost import CostCurve

POINTS = st.dictionaries(st.integers(1, 64), st.floats(0.01, 100), min_size=1, max_size=7)


def test_goes_through_its_points_and_straight_between_them() -> None:
    curve = CostCurve({4: 3.0, 8: 5.0, 16: 9.0})
    assert [curve.cost(rows) for rows in (0, 1, 4)] == [3.0, 3.0, 3.0]
    assert [curve.cost(rows) for rows in (5, 6, 8, 12, 16)] == [3.5, 4.0, 5.0, 7.0, 9.0]
    assert [curve.cost(rows) for rows in (32, 160)] == [18.0, 90.0]


@pytest.mark.parametrize("points", [{}, {0: 1.0}, {-1: 1.0, 2: 3.0}, {1: 0.0}, {1: 2.0, 4: -1.0}])
def test_curve_needs_positive_points(points: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        CostCurve(points)


def assert_never_falls(curve: CostCurve) -> None:
    costs = [curve.cost(rows) for rows in range(140)]
    assert all(low <= high * (1 + 1e-12) for low, high in pairwise(costs))
    assert costs[0] > 0


@given(POINTS, st.lists(st.tuples(st.integers(1, 130), st.floats(0.0, 1000)), max_size=20))
def test_never_falls_whatever_is_measured(points: dict[int, float], observed: list[tuple[int, float]]) -> None:
    curve = CostCurve(points)
    assert_never_falls(curve)
    for rows, ms in observed:
        curve.correct(rows, ms)
    assert_never_falls(curve)


@given(POINTS, st.integers(1, 130), st.floats(0.3, 3))
def test_moves_towards_an_observation_and_not_past_it(points: dict[int, float], rows: int, off: float) -> None:
    curve = CostCurve(points)
    before = curve.cost(rows)
    curve.correct(rows, before * off)
    after = curve.cost(rows)
    low, high = sorted((before, before * off))
    assert low * (1 - 1e-9) <= after <= high * (1 + 1e-9)


@pytest.mark.parametrize("rows", [1, 4, 5, 7, 16])
@pytest.mark.parametrize("off", [0.25, 4.0])
def test_settles_on_what_keeps_being_observed(rows: int, off: float) -> None:
    curve = CostCurve({1: 3.0, 4: 4.0, 8: 6.0, 16: 11.0})
    truth = curve.cost(rows) * off
    for _ in range(400):
        curve.correct(rows, truth)
    if off > 1 or rows == 1:
        assert curve.cost(rows) == pytest.approx(truth, rel=0.02)
    else:  # a step of fewer rows, not observed since, still says that it takes longer
        assert truth * 0.98 <= curve.cost(rows) <= 4.0


@settings(max_examples=30)
@given(st.lists(st.sampled_from([1, 2, 3, 5, 8, 11, 16]), min_size=600, max_size=600), st.floats(0.3, 3))
def test_learns_a_machine_that_became_faster_or_slower(steps: list[int], off: float) -> None:
    points = {1: 3.0, 2: 3.1, 4: 3.3, 8: 5.0, 16: 9.0}
    curve, truth = CostCurve(points), CostCurve({rows: ms * off for rows, ms in points.items()})
    for rows in steps:
        curve.correct(rows, truth.cost(rows))
    for rows in (5, 8, 11, 16):
        if steps.count(rows) > 100:
            assert curve.cost(rows) == pytest.approx(truth.cost(rows), rel=0.25)


def test_hiccup_counts_as_twice_the_cost_at_most() -> None:
    once, twice = CostCurve({1: 3.0, 8: 5.0}), CostCurve({1: 3.0, 8: 5.0})
    once.correct(8, 5_000.0)
    twice.correct(8, 10.0)
    assert once.cost(8) == twice.cost(8)
    assert 5.0 < once.cost(8) < 5.5
    fast = CostCurve({1: 3.0, 8: 5.0})
    fast.correct(8, 0.0)
    assert 4.5 < fast.cost(8) < 5.0


def test_far_points_stay_where_they_are() -> None:
    curve = CostCurve({1: 3.0, 2: 3.0, 32: 20.0, 64: 40.0})
    curve.correct(1, 6.0)
    assert curve.cost(64) == 40.0
    assert curve.cost(1) > 3.0


def test_point_below_a_hiccup_keeps_what_was_measured_there() -> None:
    """Single rows look slow for a while, so steps of 8 are known to cost less than the curve, which never falls, can
    say. Once single rows are seen to be fast again, 8 rows cost what they always did.
    """
    curve = CostCurve({1: 3.0, 4: 3.0, 8: 5.0, 16: 9.0})
    for _ in range(200):
        curve.correct(1, 8.0)
        curve.correct(8, 5.0)
    for _ in range(200):
        curve.correct(1, 3.0)
    assert curve.cost(1) == pytest.approx(3.0, rel=0.02)
    assert curve.cost(8) == pytest.approx(5.0, rel=0.05)


def test_rows_within_takes_the_whole_of_a_flat_stretch() -> None:
    curve = CostCurve({1: 3.0, 4: 3.0, 8: 6.0})
    assert [curve.rows_within(ms, 10) for ms in (2.9, 3.0, 6.0, 1000.0)] == [0, 4, 8, 10]


@given(POINTS, st.floats(0.01, 400), st.integers(0, 200))
def test_rows_within_is_the_largest_count_that_fits(points: dict[int, float], ms: float, most: int) -> None:
    curve = CostCurve(points)
    rows = curve.rows_within(ms, most)
    assert 0 <= rows <= most
    assert rows == 0 or curve.cost(rows) <= ms
    assert rows == most or curve.cost(rows + 1) > ms * (1 - 1e-12)
