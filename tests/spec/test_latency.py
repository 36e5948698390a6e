"""How much longer one class may make another's step."""

from __future__ import annotations

from math import inf

import pytest

from paceline.spec.latency import bearable


def test_where_nobody_streams_a_step_may_take_any_time() -> None:
    assert bearable({}, 0) == inf


@pytest.mark.parametrize(
    ("streams", "rank", "times"),
    [(1, 1, 2.0), (0, 1, 1.5), (0, 2, 1.25), (1, 2, 1.5), (1, 0, 3.0), (2, 0, 5.0)],
)
def test_each_class_between_halves_what_is_added(streams: int, rank: int, times: float) -> None:
    assert bearable({streams: 10.0}, rank) == pytest.approx(10.0 * times)


def test_the_one_that_bears_least_decides() -> None:
    assert bearable({0: 10.0, 1: 20.0, 2: 21.0}, 2) == 12.5
    assert bearable({0: 10.0, 1: 10.1}, 1) == 15.0
    assert bearable({1: 10.0, 2: 20.0}, 0) == 30.0
