from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import pytest

from paceline.kernels.backend import load
from paceline.kernels.sample import Draw
from paceline.kernels.sample.reference import gumbel
from paceline.spec.guess_tree import GuessTree
from paceline.spec.proposer import Ask, Verdict
from paceline.spec.tree_drafter import DraftTime, TreeDrafter, rank_coupled


class Halving(TreeDrafter):
    """Two guesses below every node, each right half as often as the one before; a pass takes `ms`."""

    name = "halving"
    needs_hidden = False

    def __init__(self, token_ms: float, ms: float = 0.0) -> None:
        super().__init__(lambda: token_ms)
        self._ms = ms
        self.passes = 0

    def _start(self, asks: Sequence[Ask]) -> dict[int, GuessTree]:
        trees = {i: GuessTree(ask) for i, ask in enumerate(asks) if ask.tokens}
        for tree in trees.values():
            self._enter(tree, 0)
        return trees

    def _look(self, chosen: Sequence[tuple[GuessTree, list[int]]]) -> None:
        self.passes += 1
        time.sleep(self._ms / 1e3)
        for tree, best in chosen:
            for node in best:
                self._enter(tree, node)

    def _enter(self, tree: GuessTree, node: int) -> None:
        tree.look_into(node, None, np.array([1, 2]), np.array([0.5, 0.25], np.float32))

    def observe(self, verdicts: Sequence[Verdict]) -> None: ...

    def forget(self, seq_id: str) -> None: ...


def ask(most: int = 30) -> Ask:
    return Ask("s", [1], 1, most)


def test_it_grows_level_by_level_while_that_pays() -> None:
    drafter = Halving(token_ms=1e9)
    proposals = drafter.propose([ask(), Ask("t", [], 0, 3), ask(3)])
    assert drafter.passes == drafter.deepest - 1
    assert [len(proposal.tokens) for proposal in proposals] == [22, 0, 3]
    assert 0 < drafter.cost_ms([ask()]) < 5e8


def test_a_pass_that_takes_more_than_it_promises_is_not_made_again() -> None:
    """Two nodes, likely with 0.5 and 0.25, promise 0.45 tokens."""
    drafter = Halving(token_ms=10.0, ms=20.0)
    assert len(drafter.propose([ask()])[0].tokens) == 6, "what a pass takes is not known yet"
    assert drafter.passes == 1
    assert len(drafter.propose([ask()])[0].tokens) == 2
    assert drafter.passes == 1
    drafter.restart()
    assert drafter.cost_ms([ask()]) == 5.0, "as before the first"
    drafter.propose([ask()])
    assert drafter.passes == 2


def test_what_was_never_measured_is_not_free() -> None:
    drafter = Halving(token_ms=10.0)
    drafter.propose([Ask("t", [], 0, 3)])
    assert drafter.cost_ms([ask()]) == 5.0


def test_times_are_kept_by_number_of_sequences() -> None:
    times = DraftTime()
    assert times.expected(3) == 0.0
    times.observe(1, 2.0)
    times.observe(8, 10.0)
    times.observe(8, 20.0)
    assert times.expected(1) == times.expected(2) == 2.0
    assert times.expected(7) == pytest.approx(11.0)


def test_the_order_is_the_noises_and_the_largest_estimate_goes_to_the_first() -> None:
    logits = np.random.default_rng(0).normal(size=(40, 12)).astype(np.float32)
    draws = [Draw(5, position, 0.9) for position in range(40)]
    tokens, estimates = rank_coupled(load(), logits, None, draws, 4)
    for row, draw in enumerate(draws):
        scores = logits[row] / np.float32(0.9) + gumbel(np.arange(12), draw.position, draw.seed)
        assert tokens[row].tolist() == np.argsort(-scores)[:4].tolist()
    assert (np.diff(estimates, axis=1) <= 0).all()
    assert rank_coupled(load(), logits, None, draws, 99)[0].shape == (40, 12)
