from __future__ import annotations

import numpy as np

from paceline.spec.guess_tree import GuessTree
from paceline.spec.proposer import Ask


def grown(most: int = 10) -> GuessTree:
    """0 -> 1 (0.6), 2 (0.3); 1 -> 3 (0.9), 4 (0.1)."""
    tree = GuessTree(Ask("s", [7, 8, 9], 2, most))
    tree.look_into(0, None, np.array([20, 21]), np.array([0.6, 0.3], np.float32))
    tree.look_into(1, np.ones(2, np.float32), np.array([30, 31]), np.array([0.9, 0.1], np.float32))
    return tree


def test_the_likeliest_unknown_nodes_come_first() -> None:
    tree = grown()
    assert tree.best(10, 9) == [3, 2, 4]
    assert tree.best(1, 9) == [3]
    assert tree.best(10, 2) == [2], "level two is not looked into"
    assert grown(2).best(10, 9) == [3], "one of two guesses was looked into"
    assert tree.inside == [1]
    assert [tree.position(node) for node in range(5)] == [2, 3, 3, 4, 4]


def test_the_proposal_holds_the_likeliest_nodes_parents_first() -> None:
    proposal = grown().proposal("x")
    assert proposal.source == "x"
    assert proposal.tokens == (20, 30, 21, 31)
    assert proposal.parents == (-1, 0, -1, 0)
    assert np.allclose(proposal.probabilities, (0.6, 0.9, 0.3, 0.1))
    assert grown(2).proposal("x").tokens == (20, 30)
