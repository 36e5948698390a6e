"""The loop over levels on its own; what drafters make of it is tested with each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from backends import guessing_reference, ops_or_skip

from paceline.spec.guess_tree import GuessTree
from paceline.spec.proposer import Ask
from paceline.spec.spine import MOST_LEVELS, Spine, read


def test_results_are_read_by_level() -> None:
    """Two rows, three levels of two guesses, one value more of each level."""
    tokens = np.arange(12).reshape(2, 6)
    probabilities = np.array([[0.1, 0.2, 0.4, 0.3, 0.5, 0.5], [0.0, 0.0, 0.2, 0.7, 0.3, 0.1]], np.float32)
    values = np.array([[7, 8, 9], [4, 5, 6]], np.float32)
    got = read(np.concatenate((tokens, probabilities, values), axis=1).astype(np.float32), 3, 1)
    assert got[0].tolist() == tokens.reshape(2, 3, 2).tolist()
    assert np.array_equal(got[1], -np.sort(-probabilities.reshape(2, 3, 2), axis=2))
    assert got[2][:, :, 0].tolist() == values.tolist()


@pytest.mark.parametrize("backend", ["reference", "triton"])
def test_every_level_goes_on_from_the_best_guess_above_it_and_its_state(backend: str) -> None:
    """Of three tokens the one after the pass's own is best; states add up its tokens."""
    ops = guessing_reference() if backend == "reference" else ops_or_skip(backend)
    ids = np.array([10, 20, 30])

    def step(level: int, tokens: torch.Tensor, state: torch.Tensor) -> tuple[Any, Any, Any]:
        state = state + tokens[:, None]
        best = (tokens // 10) % 3  # the column after the token's own
        logits = -(torch.arange(3) - best[:, None]).abs().float() - level
        return logits, state, state[:, :1] * 2

    assert ops.guessing is not None
    spine = Spine(ops, ops.guessing, step, vocabulary=ids, levels=99, width=1, passed=lambda above, made: above + made)
    assert spine.levels == MOST_LEVELS
    trees = [GuessTree(Ask("a", [1, 10], 1, 9)), GuessTree(Ask("b", [1, 2, 30], 1, 9))]
    spine.grow(trees, np.zeros((2, 2), np.float32), [10, 30])
    assert [tree.inside for tree in trees] == [[1, 4, 7]] * 2, "three guesses below each"
    assert [[tree.tokens[node] for node in (1, 4, 7, 10)] for tree in trees] == [[20, 30, 10, 20], [10, 20, 30, 10]]
    assert [passed[0] for passed in trees[0].passed.values() if passed is not None] == [20, 80, 200, 340]
    assert [passed[0] for passed in trees[1].passed.values() if passed is not None] == [60, 140, 260, 440]
    assert trees[0].estimates[1] > trees[0].estimates[2] >= trees[0].estimates[3] > 0
