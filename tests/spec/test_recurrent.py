"""The recurrent drafter's tree: below every node stands what plain numpy guesses from the state moved on to it."""

from __future__ import annotations

import numpy as np
import pytest
from backends import guessing_reference, ops_or_skip
from spines import check_spine
from tiny_heads import paths_of

from paceline.kernels.backend import Ops
from paceline.kernels.linear import ArrayMatrix
from paceline.kernels.sample.reference import gumbel
from paceline.spec.guess_tree import Floats
from paceline.spec.proposer import Ask, Verdict
from paceline.spec.recurrent import RecurrentDrafter, RecurrentModel, RecurrentWeights

HIDDEN, INNER, VOCAB = 64, 96, 40
IDS = np.arange(0, VOCAB, 2)
RANDOM = np.random.default_rng(1)
ROWS, TABLE = (RANDOM.normal(size=(rows, HIDDEN)).astype(np.float32) for rows in (len(IDS), VOCAB))


def drawn(*shape: int) -> Floats:
    return (RANDOM.normal(size=shape) * shape[-1] ** -0.5).astype(np.float32)


WEIGHTS = RecurrentWeights(
    embed_norm=RANDOM.random(HIDDEN, np.float32) + 0.5,
    hidden_norm=RANDOM.random(HIDDEN, np.float32) + 0.5,
    mix=drawn(HIDDEN, 2 * HIDDEN),
    mlp_norm=RANDOM.random(HIDDEN, np.float32) + 0.5,
    gate_up=drawn(2 * INNER, HIDDEN),
    down=drawn(HIDDEN, INNER),
    norm=RANDOM.random(HIDDEN, np.float32) + 0.5,
    eps=1e-5,
    vocabulary=IDS,
)


@pytest.fixture(params=["reference", "native"])
def ops(request: pytest.FixtureRequest) -> Ops:
    return ops_or_skip(request.param)


def drafter_of(ops: Ops, token_ms: float = 1e9) -> RecurrentDrafter:
    model = RecurrentModel(WEIGHTS, ops, ops.pack_table(ArrayMatrix(TABLE)), ROWS)
    return RecurrentDrafter(model, token_ms=lambda: token_ms)


def normed(x: Floats, weight: Floats) -> Floats:
    return np.asarray(x / np.sqrt(np.square(x).mean() + WEIGHTS.eps) * weight)


def moved(state: Floats, token: int) -> Floats:
    both = np.concatenate([normed(TABLE[token], WEIGHTS.embed_norm), normed(state, WEIGHTS.hidden_norm)])
    x = state + WEIGHTS.mix @ both
    gate, up = np.split(WEIGHTS.gate_up @ normed(x, WEIGHTS.mlp_norm), 2)
    return np.asarray(x + WEIGHTS.down @ (gate / (1 + np.exp(-gate)) * up))


def plain_scores(hidden: Floats, tokens: list[int]) -> Floats:
    """Of the guessable tokens, after the pending one and guesses."""
    state = hidden.astype(np.float64)
    for token in tokens:
        state = moved(state, token)
    return np.asarray(ROWS @ normed(state, WEIGHTS.norm), np.float32)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_guesses_are_those_of_plain_numpy(ops: Ops, temperature: float) -> None:
    drafter = drafter_of(ops)
    hidden = np.random.default_rng(2).normal(size=(2, HIDDEN)).astype(np.float32)
    asks = [Ask(f"s{i}", [*range(5 + i)], 2, 12, seed=i, temperature=temperature) for i in range(3)]
    drafter.observe([Verdict(f"s{i}", (0,), start=3 + i, hidden=hidden[i]) for i in range(2)])
    proposals = drafter.propose(asks)
    assert proposals[2].tokens == ()
    for i in range(2):
        ask, paths = asks[i], paths_of(proposals[i])
        assert max(map(len, paths)) > 2
        for path in paths:
            scores = plain_scores(hidden[i], [ask.tokens[-1], *path[:-1]])
            if temperature:
                position = len(ask.tokens) - 1 + len(path)
                scores = scores / np.float32(temperature) + gumbel(IDS, position, ask.seed)
            mine = scores[np.searchsorted(IDS, path[-1])]
            assert mine >= np.sort(scores)[-4] - 0.15 * scores.std(), "among the four best, up to 4-bit weights"


def test_no_pass_is_made_that_does_not_pay(ops: Ops) -> None:
    drafter = drafter_of(ops, token_ms=0.0)
    drafter.observe([Verdict("s", (0,), start=0, hidden=np.ones(HIDDEN, np.float32))])
    proposal = drafter.propose([Ask("s", [3, 1], 1, 20)])[0]
    assert set(proposal.parents) == {-1}
    drafter.forget("s")
    assert drafter.propose([Ask("s", [3, 1], 1, 20)])[0].tokens == ()


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_spine_is_the_best_guess_below_the_best_guess(temperature: float) -> None:
    check_spine(drafter_of, guessing_reference(), HIDDEN, temperature)
