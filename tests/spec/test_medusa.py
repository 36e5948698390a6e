"""Proposals of heads are what plain numpy makes of the same weights."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from backends import guessing_reference, ops_or_skip
from numpy.typing import NDArray
from tiny_heads import heads_tensors, plain_logits

from paceline.kernels.backend import Ops
from paceline.kernels.linear import ArrayMatrix
from paceline.kernels.sample import Draw
from paceline.kernels.sample.reference import gumbel
from paceline.spec.heads import Block, FinalNorm, Heads, HeadsWeights
from paceline.spec.medusa import MedusaDrafter, MedusaModel, likeliest_paths
from paceline.spec.proposer import Ask, Verdict

HIDDEN, VOCAB, HEADS = 64, 40, 3
NORM = FinalNorm(np.linspace(0.5, 1.5, HIDDEN, dtype=np.float32), 1e-5)
ROWS = np.random.default_rng(1).normal(size=(VOCAB, HIDDEN)).astype(np.float32) / 2


@pytest.fixture(params=["reference", "native"])
def ops(request: pytest.FixtureRequest) -> Ops:
    return ops_or_skip(request.param)


def weights_of(layers: int = 1, vocabulary: NDArray[np.int64] | None = None, own: bool = False) -> HeadsWeights:
    guessable = VOCAB if vocabulary is None else len(vocabulary)
    tensors = heads_tensors(HIDDEN, heads=HEADS, layers=layers, guessable=guessable if own else None)
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    return HeadsWeights(
        heads=tuple(
            tuple(
                Block(weight=arrays[f"{head}.{layer}.linear.weight"], bias=arrays[f"{head}.{layer}.linear.bias"])
                for layer in range(layers)
            )
            for head in range(HEADS)
        ),
        vocabulary=vocabulary,
        outs=tuple(arrays[f"{head}.{layers}.weight"] for head in range(HEADS)) if own else None,
    )


TRIMMED = np.arange(3, VOCAB, 2)


@pytest.mark.parametrize(
    ("layers", "vocabulary", "own"), [(1, None, False), (2, None, True), (1, TRIMMED, False), (1, TRIMMED, True)]
)
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_ranks_are_those_of_plain_numpy(
    ops: Ops, layers: int, vocabulary: NDArray[np.int64] | None, own: bool, temperature: float
) -> None:
    weights = weights_of(layers, vocabulary, own)
    ids = np.arange(VOCAB) if vocabulary is None else vocabulary
    model = MedusaModel(Heads(weights, ops, None if own else ops.pack(ArrayMatrix(ROWS[ids]), form="q8")), NORM)
    hidden = np.random.default_rng(2).normal(size=(3, HIDDEN)).astype(np.float32)
    draws = [Draw(7 + s, 20 + s + head, temperature) for s in range(3) for head in range(HEADS)]
    tokens, estimates = model.rank(hidden, draws)
    assert tokens.shape == estimates.shape == (3, HEADS, 8)
    assert (np.diff(estimates, axis=2) <= 0).all()
    for s, head in itertools.product(range(3), range(HEADS)):
        draw = draws[s * HEADS + head]
        scores = plain_logits(weights, head, NORM(hidden[s : s + 1])[0], ROWS[ids])
        if temperature:
            scores = scores / np.float32(temperature) + gumbel(ids, draw.position, draw.seed)
        got = scores[np.searchsorted(ids, tokens[s, head])]
        # 8-bit weights move scores a little: equal up to neighbours that nearly tie.
        tolerance = 1e-3 if ops.name == "reference" else 0.3
        assert np.allclose(got, np.sort(scores)[::-1][:8], rtol=0.0, atol=tolerance)


@pytest.mark.parametrize(
    ("vocabulary", "own"), [(None, False), (TRIMMED, False), (TRIMMED, True), (TRIMMED[:5], False)]
)
def test_one_pass_ranks_as_several_do(vocabulary: NDArray[np.int64] | None, own: bool) -> None:
    """Greedy sequences and seeded ones."""
    ids = np.arange(VOCAB) if vocabulary is None else vocabulary

    def ranked(ops: Ops) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        rows = None if own else ops.pack(ArrayMatrix(ROWS[ids]), form="q8")
        return MedusaModel(Heads(weights_of(1, vocabulary, own), ops, rows), NORM).rank(hidden, draws)

    hidden = np.random.default_rng(2).normal(size=(3, HIDDEN)).astype(np.float32)
    draws = [Draw(2**63 + s, 20 + s + head, 0.7 * (s % 2)) for s in range(3) for head in range(HEADS)]
    (tokens, estimates), (wanted, shares) = ranked(guessing_reference()), ranked(ops_or_skip("reference"))
    assert tokens.tolist() == wanted.tolist()
    np.testing.assert_allclose(estimates, shares, rtol=1e-4)


def test_likeliest_paths_are_the_best_of_all_there_are() -> None:
    rng = np.random.default_rng(4)
    tokens = np.stack([rng.permutation(30)[:4] for _ in range(3)])
    estimates = -np.sort(-rng.uniform(0.05, 0.9, (3, 4)), axis=1).astype(np.float32)
    products = sorted(
        (
            float(np.prod([np.float64(estimates[level, rank]) for level, rank in enumerate(path)]))
            for depth in (1, 2, 3)
            for path in itertools.product(range(4), repeat=depth)
        ),
        reverse=True,
    )
    for most in (0, 1, 5, 30, 84, 200):
        proposal = likeliest_paths("medusa", tokens, estimates, most)
        likely: list[float] = []
        seen = set()
        for token, parent, estimate in zip(proposal.tokens, proposal.parents, proposal.probabilities, strict=True):
            assert parent < len(likely)
            likely.append(estimate * (likely[parent] if parent >= 0 else 1.0))
            seen.add((token, parent))
        assert np.allclose(likely, products[:most])
        assert len(seen) == len(likely)


def drafter_of(ops: Ops) -> MedusaDrafter:
    return MedusaDrafter(MedusaModel(Heads(weights_of(), ops, ops.pack(ArrayMatrix(ROWS), form="q8")), NORM))


def test_proposals_follow_the_last_hidden_state(ops: Ops) -> None:
    drafter = drafter_of(ops)
    hidden = np.random.default_rng(5).normal(size=(2, HIDDEN)).astype(np.float32)
    asks = [Ask(f"s{i}", list(range(10 + i)), 4, 9, seed=3, temperature=0.9 * i) for i in range(3)]
    assert [proposal.tokens for proposal in drafter.propose(asks)] == [()] * 3
    drafter.observe([Verdict(f"s{i}", (0,), start=8 + i, hidden=hidden[i]) for i in range(2)])
    proposals = drafter.propose(asks)
    assert [len(proposal.tokens) for proposal in proposals] == [9, 9, 0]
    weights = weights_of()
    for i, proposal in enumerate(proposals[:2]):
        ask = asks[i]
        scores = plain_logits(weights, 0, NORM(hidden[i : i + 1])[0], ROWS)
        if ask.temperature:
            scores = scores / np.float32(ask.temperature) + gumbel(np.arange(VOCAB), len(ask.tokens), ask.seed)
        assert proposal.tokens[0] == scores.argmax()
        assert proposal.source == "medusa"
    assert drafter.cost_ms(asks) > 0
    drafter.forget("s0")
    assert drafter.propose(asks)[0].tokens == ()


def test_what_is_proposed_for_one_does_not_depend_on_the_others(ops: Ops) -> None:
    drafter = drafter_of(ops)
    hidden = np.random.default_rng(6).normal(size=(20, HIDDEN)).astype(np.float32)
    asks = [Ask(f"s{i}", [1, 2, 3], 1, 12) for i in range(20)]
    drafter.observe([Verdict(ask.seq_id, (0, 1), start=0, hidden=h) for ask, h in zip(asks, hidden, strict=True)])
    together: list[Any] = drafter.propose(asks)
    for ask, proposal in zip(asks, together, strict=True):
        assert drafter.propose([ask])[0].tokens == proposal.tokens
