from __future__ import annotations

import numpy as np
import pytest

from paceline.spec.training.figures import MISSED, figures_of


def test_figures_by_hand() -> None:
    """Four places, three guesses in a row."""
    ranks = np.array(
        [
            [0, 0, 0],
            [0, 0, 1],
            [0, 1, 0],
            [1, MISSED, 0],
        ]
    )
    figures = figures_of(ranks, nodes=(1, 2, 3, 4, 5, 8, 16))
    assert figures.places == 4
    assert figures.by_depth_and_rank == ((0.75, 0.25, 0, 0), (0.5, 0.25, 0, 0), (0.75, 0.25, 0, 0))
    # The best guess alone: right at depth 1 in three of four places, at depth 2 in two of them, at depth 3 in one.
    assert figures.chain == 1 + 0.75 + 0.5 + 0.25
    # Paths by how often they come: (0) 3, (0 0) 2, then (1), (0 1), (0 0 0), (0 0 1), (0 1 0) once each.
    assert figures.trees == {1: 1.0, 2: 1.75, 3: 2.25, 4: 2.5, 5: 2.75, 8: 3.5, 16: 3.5}


def test_nothing_to_look_at_is_worth_nothing() -> None:
    figures = figures_of(np.zeros((0, 2), np.int64))
    assert (figures.places, figures.chain, figures.trees[8]) == (0, 1.0, 1.0)


@pytest.mark.parametrize("depth", [1, 5])
def test_always_right(depth: int) -> None:
    figures = figures_of(np.zeros((7, depth), np.int64))
    assert figures.chain == 1 + depth
    assert figures.trees[8] == 1 + depth
    assert figures.line() == f"{1 + depth:.2f} tokens per step"
