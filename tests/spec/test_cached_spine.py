"""One pass over rows that wait for their tokens guesses what a pass per level does; any slip in rows or slots shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backends import guessing_reference
from line_model import VOCAB, LineModel, next_token

from paceline.kernels.backend import load
from paceline.spec.cached_drafter import CachedDrafter
from paceline.spec.cached_spine import MOST_ROWS, lengthened
from paceline.spec.draft_batch import Rows
from paceline.spec.draft_model import DraftModel
from paceline.spec.eagle_drafter import EagleDrafter
from paceline.spec.guess_tree import GuessTree
from paceline.spec.proposer import Ask, Verdict


class Counted(LineModel):
    """Counts its own passes, not the levels of a spine."""

    def __init__(self, behind: int) -> None:
        super().__init__(behind)
        self.passes = 0

    def forward(self, batch: Any, cache: Any) -> Any:
        self.passes += 1
        return super().forward(batch, cache)


def drafter_of(kind: str, model: LineModel, spine: bool) -> CachedDrafter[Any]:
    ops = guessing_reference() if spine else load()
    if kind == "draft":
        return DraftModel(model, None, ops, token_ms=lambda: 1e9)
    return EagleDrafter(model, None, ops, index=0, token_ms=lambda: 1e9)  # type: ignore[arg-type]


def started(kind: str, spine: bool, asks: list[Ask]) -> tuple[list[GuessTree], int]:
    """After all but the last rows were entered: (the trees, passes that they took)."""
    model = Counted(int(kind == "eagle"))
    drafter = drafter_of(kind, model, spine)
    for ask in asks:
        count = len(ask.tokens) - 1
        positions = np.arange(count, dtype=np.float32)[:, None]
        drafter.observe([Verdict(ask.seq_id, tuple(range(count)), features=(positions,))])
        while drafter._ready(ask) is not None and drafter._due(ask) > 8:
            drafter._catch_up([ask])
    model.passes = 0
    trees = list(drafter._start(asks).values())
    for _ in range(1, 1 if spine else 4):
        chosen = [(tree, [at]) for tree in trees if (at := next_of(tree)) and drafter._room(tree) > 0]
        drafter._look([(tree, nodes) for tree, nodes in chosen if len(tree.inside) < tree.ask.max_guesses - 1])
    return trees, model.passes


def next_of(tree: GuessTree) -> int:
    return tree.parents.index([0, *tree.inside][-1])


def asks_of(temperature: float) -> list[Ask]:
    """One has slots for two levels, one may have one guess, one has no room behind its due rows."""
    lengths, most = (6, 31, 30, 17, 32), (9, 9, 9, 1, 9)
    return [
        Ask(f"s{i}", [(7 * i + j) % VOCAB for j in range(n)], 2, m, [10 * i + 5, 10 * i + 2], i, temperature * (i % 2))
        for i, (n, m) in enumerate(zip(lengths, most, strict=True))
    ]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("kind", ["draft", "eagle"])
def test_a_spine_is_the_best_guess_below_the_best_guess(kind: str, temperature: float) -> None:
    asks = asks_of(temperature)
    trees, passes = started(kind, True, asks)
    others, _ = started(kind, False, asks)
    assert passes == 0
    assert max(len(tree.inside) for tree in trees) == 3
    assert min(len(tree.inside) for tree in trees) == 0
    for tree, other in zip(trees, others, strict=True):
        assert (tree.tokens, tree.parents, tree.inside) == (other.tokens, other.parents, other.inside)
        np.testing.assert_allclose(tree.estimates, other.estimates, rtol=1e-5)
        line = list(tree.ask.tokens)
        for node in (*tree.inside, next_of(tree)):
            assert tree.tokens[node] == next_token(tuple(line), len(line), tree.ask.seed, tree.ask.temperature)
            line.append(tree.tokens[node])
        for node in tree.inside:
            assert np.array_equal(tree.passed[node], other.passed[node])  # type: ignore[arg-type]


def test_more_rows_than_are_read_for_the_price_of_one_are_guessed_level_by_level() -> None:
    asks = [Ask(f"s{i}", [1, 2, 3, i], 1, 9, [i]) for i in range(MOST_ROWS // 4)]
    trees, passes = started("draft", True, asks)
    assert passes == 1
    assert all(not tree.inside for tree in trees)


def test_rows_that_wait_stand_behind_the_due_ones() -> None:
    rows = Rows([5, 6], range(8, 10), 0, 8, [0], features=np.ones((2, 3), np.float32))
    longer = lengthened(rows, 2)
    assert list(longer.positions) == [8, 9, 10, 11]
    assert longer.features is not None
    assert longer.features.shape == (4, 3)
    assert lengthened(rows, 0) is rows
