from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from paceline.server.spec_figures import SpecFigures

STEPS = st.lists(st.integers(0, 9).flatmap(lambda drafted: st.tuples(st.just(drafted), st.integers(0, drafted))))


def counted(steps: list[tuple[int, int]]) -> SpecFigures:
    figures = SpecFigures()
    for drafted, accepted in steps:
        figures.add(drafted, accepted)
    return figures


def test_they_are_told_in_vllms_shape() -> None:
    assert counted([(0, 0), (4, 2), (2, 0), (3, 1)]).body() == {
        "mean_acceptance_length": 2.0,  # (3 + 1 + 2) / 3
        "draft_acceptance_rate": 3 / 9,
        "acceptance_histogram": [1, 1, 1, 0, 0],
        "num_spec_steps": 3,
        "num_accepted_draft_tokens": 3,
        "num_draft_tokens": 9,
        "num_spec_tokens": 4,
    }


def test_plain_decoding_has_finite_figures() -> None:
    body = counted([(0, 0)]).body()
    assert body["mean_acceptance_length"] == 1.0
    assert body["draft_acceptance_rate"] == 0.0
    assert body["acceptance_histogram"] == [0]
    assert body["num_spec_steps"] == body["num_spec_tokens"] == 0
    assert all(math.isfinite(value) for value in body.values() if isinstance(value, float))


@given(first=STEPS, second=STEPS)
def test_a_sum_is_one_reply_with_the_steps_of_both(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    total = counted(first) + counted(second)
    assert total == counted(first + second)
    assert sum(count * kept for kept, count in enumerate(total.histogram)) == total.accepted
