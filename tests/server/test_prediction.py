from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.server.prediction import PredictionMatch

TOKENS = st.lists(st.integers(0, 3), max_size=40)


def counted(prediction: list[int], reply: list[int]) -> tuple[int, int]:
    match = PredictionMatch(prediction)
    match.push(reply[:3])
    match.push(reply[3:])
    return match.accepted, match.rejected


@pytest.mark.parametrize(
    ("reply", "accepted"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], 8),
        ([1, 2, 3], 3),
        ([], 0),
        ([9, 9, 1, 2, 3, 4, 5, 6, 7, 8], 8),  # put before it
        ([1, 2, 3, 9, 5, 6, 7, 8], 7),  # changed
        ([1, 2, 6, 7, 8], 5),  # left out
        ([9, 9, 9], 0),
        ([8, 7, 6, 5], 0),
    ],
)
def test_counts_what_came_true(reply: list[int], accepted: int) -> None:
    assert counted([1, 2, 3, 4, 5, 6, 7, 8], reply) == (accepted, 8 - accepted)


@given(TOKENS, TOKENS)
def test_no_token_counts_twice(prediction: list[int], reply: list[int]) -> None:
    accepted, rejected = counted(prediction, reply)
    assert accepted + rejected == len(prediction)
    assert 0 <= accepted <= min(len(prediction), len(reply))
    assert counted(prediction, prediction) == (len(prediction), 0)
