from __future__ import annotations

import numpy as np
import pytest

from paceline.kernels.backend import load
from paceline.kernels.linear import ArrayMatrix
from paceline.spec.heads import Block, FinalNorm, Heads, HeadsWeights, LastHidden
from paceline.spec.proposer import Ask, Verdict


def test_the_norm_is_the_targets() -> None:
    hidden = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    normed = FinalNorm(np.array([1.0, 2.0], np.float32), 1e-6)(hidden)
    assert normed.dtype == np.float32
    assert np.allclose(normed, [[3 / 12.5**0.5, 8 / 12.5**0.5], [0, 0]])


def test_heads_without_rows_need_the_targets() -> None:
    block = Block(weight=np.eye(4, dtype=np.float32), bias=np.zeros(4, np.float32))
    weights = HeadsWeights(heads=((block,), (block,)))
    with pytest.raises(ValueError, match="rows"):
        Heads(weights, load(), None)
    ops = load()
    assert Heads(weights, ops, ops.pack(ArrayMatrix(np.eye(4, dtype=np.float32)))).shares_rows


def test_a_hidden_state_serves_only_the_token_chosen_from_it() -> None:
    last = LastHidden()
    hidden = np.ones(4, np.float32)
    ask, other = Ask("s", [1, 2, 3, 4], 2, 5), Ask("other", [1, 2, 3, 4], 2, 5)
    assert last.ready([ask]) == {}
    last.observe([Verdict("s", (0, 1), start=0)])  # a prefill that goes on
    assert last.ready([ask]) == {}
    last.observe([Verdict("s", (0, 2), start=1, hidden=hidden)])
    assert list(last.ready([other, ask, other]).items()) == [(1, hidden)]
    assert last.ready([Ask("s", [1, 2, 3, 4, 5], 2, 5)]) == {}
    last.forget("s")
    assert last.ready([ask]) == {}
