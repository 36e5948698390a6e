from __future__ import annotations

from typing import Any

import numpy as np

from paceline.kernels.batch import Batch
from paceline.kernels.sample import Draw
from paceline.kernels.settle.reference import settle
from paceline.kernels.tree_attention import Layout

ROWS = np.random.default_rng(5).standard_normal((4, 30), np.float32)
BATCH = Batch(*(np.arange(4) for _ in range(4)), Layout.chain(4, np.zeros(1, np.int32)))


def test_greedy_rows_are_chosen_together_and_others_left_to_the_walk() -> None:
    taken: list[int] = []

    def argmax(rows: Any) -> list[int]:
        taken.append(len(rows))
        return [int(row.argmax()) for row in rows]

    draws = [Draw(1, 2, 0.0), None, Draw(1, 3, 0.7), Draw(1, 4, 0.0)]
    settled = settle(ROWS, draws, BATCH, None, argmax=argmax).result()
    assert settled.tokens == [int(ROWS[0].argmax()), None, None, int(ROWS[3].argmax())]
    assert not settled.moved
    assert taken == [4]


def test_nothing_is_computed_that_no_row_wants() -> None:
    def argmax(rows: Any) -> list[int]:
        raise AssertionError

    assert settle(ROWS, [None, Draw(1, 2, 0.5)] * 2, BATCH, None, argmax=argmax).result().tokens == [None] * 4
    assert settle(ROWS[:0], [], BATCH, None, argmax=argmax).result().tokens == []
