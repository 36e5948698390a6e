"""Hydra's tree: below every node stands what plain numpy guesses from the embeddings on the way there."""

from __future__ import annotations

import numpy as np
import pytest
from backends import guessing_reference, ops_or_skip
from spines import check_spine
from tiny_heads import heads_tensors, paths_of, plain_logits

from paceline.kernels.backend import Ops
from paceline.kernels.linear import ArrayMatrix
from paceline.kernels.sample.reference import gumbel
from paceline.spec.heads import Block, FinalNorm, Heads, HeadsWeights
from paceline.spec.hydra import HydraDrafter, HydraModel
from paceline.spec.proposer import Ask, Verdict

HIDDEN, VOCAB, HEADS = 64, 40, 3
NORM = FinalNorm(np.ones(HIDDEN, np.float32), 1e-5)
ROWS, TABLE = np.random.default_rng(1).normal(size=(2, VOCAB, HIDDEN)).astype(np.float32) / 2


@pytest.fixture(params=["reference", "native"])
def ops(request: pytest.FixtureRequest) -> Ops:
    return ops_or_skip(request.param)


def weights_of() -> HeadsWeights:
    a = {name: tensor.numpy() for name, tensor in heads_tensors(HIDDEN, heads=HEADS, layers=2, hydra=True).items()}
    return HeadsWeights(
        heads=tuple(
            (
                Block(
                    weight=a[f"{head}.0.linear.weight"],
                    bias=a[f"{head}.0.linear.bias"],
                    skip=a[f"{head}.0.res_connection.weight"],
                    skip_bias=a[f"{head}.0.res_connection.bias"],
                ),
                Block(weight=a[f"{head}.1.linear.weight"], bias=a[f"{head}.1.linear.bias"]),
            )
            for head in range(HEADS)
        )
    )


def drafter_of(ops: Ops, token_ms: float = 1e9) -> HydraDrafter:
    model = HydraModel(Heads(weights_of(), ops, ops.pack(ArrayMatrix(ROWS))), NORM, ops.pack_table(ArrayMatrix(TABLE)))
    return HydraDrafter(model, token_ms=lambda: token_ms)


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_guesses_are_those_of_plain_numpy(ops: Ops, temperature: float) -> None:
    drafter, weights = drafter_of(ops), weights_of()
    hidden = np.random.default_rng(2).normal(size=(2, HIDDEN)).astype(np.float32)
    asks = [Ask(f"s{i}", [*range(5 + i)], 2, 20, seed=i, temperature=temperature) for i in range(3)]
    drafter.observe([Verdict(f"s{i}", (0,), start=3 + i, hidden=hidden[i]) for i in range(2)])
    proposals = drafter.propose(asks)
    assert proposals[2].tokens == ()
    for i in range(2):
        ask, paths = asks[i], paths_of(proposals[i])
        assert len(set(map(tuple, paths))) == len(paths)
        assert max(map(len, paths)) == HEADS
        for path in paths:
            read = [NORM(hidden[i : i + 1])[0], TABLE[ask.tokens[-1]], *(TABLE[token] for token in path[:-1])]
            scores = plain_logits(weights, len(path) - 1, np.concatenate(read), ROWS)
            if temperature:
                position = len(ask.tokens) - 1 + len(path)
                scores = scores / np.float32(temperature) + gumbel(np.arange(VOCAB), position, ask.seed)
            assert scores[path[-1]] >= np.sort(scores)[-4] - 0.1, "among the four best, up to 8-bit weights"


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
