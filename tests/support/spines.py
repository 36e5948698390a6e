"""Drafters whose first pass grows a spine, held to what looking into the best guess again and again gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from paceline.kernels.backend import Ops
from paceline.spec.guess_tree import GuessTree
from paceline.spec.heads import HiddenDrafter
from paceline.spec.proposer import Ask, Verdict
from paceline.spec.spine import MOST_LEVELS


def check_spine(make: Callable[[Ops], HiddenDrafter], ops: Ops, hidden: int, temperature: float) -> None:
    """For sequences of several lengths, greedy ones and seeded ones beside each other. What is looked into beside the
    spine, and below it, reads what the spine's pass left.
    """
    asks = [
        Ask(f"s{i}", [*range(5 + 3 * i)], 2, 30, seed=2**63 + i, temperature=temperature * (i % 2)) for i in range(3)
    ]
    drafter, plain = make(ops), make(replace(ops, guessing=None))
    levels = min(drafter.deepest, MOST_LEVELS)
    states = np.random.default_rng(2).normal(size=(3, hidden)).astype(np.float32)
    for each in (drafter, plain):
        each.observe(
            [Verdict(ask.seq_id, (0,), len(ask.tokens) - 2, (), h) for ask, h in zip(asks, states, strict=True)]
        )
    trees, others = list(drafter._start(asks).values()), list(plain._start(asks).values())
    for _ in range(1, levels):
        look(plain, others, below_last)
    assert all(len(tree.inside) == levels - 1 > 1 for tree in trees)
    compare(trees, others)
    for where in (second, below_last):
        look(drafter, trees, where)
        look(plain, others, where)
    compare(trees, others)
    few = [ask._replace(max_guesses=1) for ask in asks]
    assert [len(proposal.tokens) for proposal in drafter.propose(few)] == [1, 1, 1]


def below_last(tree: GuessTree) -> int:
    """The best guess below what was looked into last."""
    return tree.parents.index([0, *tree.inside][-1])


def second(tree: GuessTree) -> int:
    return tree.parents.index(0) + 1


def look(drafter: HiddenDrafter, trees: Sequence[GuessTree], where: Callable[[GuessTree], int]) -> None:
    drafter._look([(tree, [where(tree)]) for tree in trees])


def compare(trees: Sequence[GuessTree], others: Sequence[GuessTree]) -> None:
    for tree, other in zip(trees, others, strict=True):
        assert (tree.tokens, tree.parents, tree.inside) == (other.tokens, other.parents, other.inside)
        np.testing.assert_allclose(tree.estimates, other.estimates, rtol=1e-4)
        assert tree.passed.keys() == other.passed.keys()
        for node, passed in other.passed.items():
            np.testing.assert_allclose(tree.passed[node], passed, rtol=1e-4, atol=1e-5)
