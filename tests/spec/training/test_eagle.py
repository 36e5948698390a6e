"""The layer that is trained and the pass that drafts are the same computation, at the same places of a text."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from training import HEAD_DIM, HIDDEN, KV_HEADS, draw_parameters, examples_of, random_target

from paceline.engine.model.config import RopeConfig
from paceline.engine.model.decoder import rotation
from paceline.kernels import backend
from paceline.kernels.linear import ArrayMatrix
from paceline.spec.draft_batch import Rows, batch_of
from paceline.spec.eagle import EagleModel, EagleWeights
from paceline.spec.eagle_drafter import EagleDrafter, Floats
from paceline.spec.proposer import Ask, Verdict
from paceline.spec.training.eagle_student import EagleStudent
from paceline.spec.training.target import Target

TAPS = (0, 1, 2)
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture(scope="module")
def target() -> Target:
    return random_target()


@pytest.fixture(scope="module")
def student(target: Target) -> EagleStudent:
    """Every parameter random, so that one that is left out or swapped shows."""
    student = EagleStudent(target, TAPS)
    draw_parameters(student.module)
    return student


def weights_of(student: EagleStudent, target: Target, vocabulary: list[int]) -> EagleWeights:
    state = {name: tensor.numpy() for name, tensor in student.module.state_dict().items()}
    qkv = np.concatenate([state[f"midlayer.self_attn.{part}_proj.weight"] for part in "qkv"])
    return EagleWeights(
        taps=TAPS,
        projections=tuple(np.ascontiguousarray(part) for part in np.split(state["fc.weight"], len(TAPS), axis=1)),
        embed_norm=state["midlayer.input_layernorm.weight"],
        hidden_norm=state["midlayer.hidden_norm.weight"],
        qkv_embed=np.ascontiguousarray(qkv[:, :HIDDEN]),
        qkv_hidden=np.ascontiguousarray(qkv[:, HIDDEN:]),
        out=state["midlayer.self_attn.o_proj.weight"],
        ffn_norm=state["midlayer.post_attention_layernorm.weight"],
        gate_up=np.concatenate([state["midlayer.mlp.gate_proj.weight"], state["midlayer.mlp.up_proj.weight"]]),
        down=state["midlayer.mlp.down_proj.weight"],
        norm=state["norm.weight"],
        eps=target.eps,
        kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        rope_theta=target.rope_theta,
        vocabulary=np.array(vocabulary, np.int64),
    )


class Inference:
    """The drafter's pass on the reference backend."""

    def __init__(self, student: EagleStudent, target: Target, vocabulary: list[int]) -> None:
        self.ops = backend.load()
        self.weights = weights_of(student, target, vocabulary)
        turn = rotation(RopeConfig(theta=target.rope_theta), HEAD_DIM, 256, self.ops.constant)
        embed = self.ops.pack_table(ArrayMatrix(target.embed))
        self.model = EagleModel(self.weights, self.ops, turn, embed, target.head[vocabulary])
        self.cache = self.ops.allocate(self.weights.cache_shape, 16)

    def features(self, hidden: Floats) -> Floats:
        """[n, T, H] -> [n, H], as the target's pass sums them."""
        return sum(hidden[:, i] @ part.T for i, part in enumerate(self.weights.projections))  # type: ignore[return-value]

    def forward(self, rows: Rows) -> tuple[Floats, Floats]:
        logits, hidden = self.model.forward(batch_of([rows], [len(rows.ids)]), self.cache)
        return self.ops.host(logits), self.ops.host(hidden)


def trained_logits(
    student: EagleStudent, target: Target, vocabulary: list[int], tokens: list[int], hidden: Floats, depth: int
) -> list[Floats]:
    """[N, number of guessable tokens] for each guess in a row, as the trainer sees them."""
    examples = examples_of(target, [tokens], hidden[None])
    head = torch.from_numpy(target.head[vocabulary])
    with torch.no_grad():
        return [(student.finish(guess[0]) @ head.T).numpy() for guess in student.guesses(examples, depth)]


def text(target: Target, length: int, seed: int) -> tuple[list[int], Floats]:
    random = np.random.default_rng(seed)
    tokens = random.integers(0, target.vocab_size, length).tolist()
    return tokens, random.standard_normal((length, len(TAPS), HIDDEN)).astype(np.float32)


def test_rows_that_catch_up_and_guesses_in_a_row_have_the_trained_logits(target: Target, student: EagleStudent) -> None:
    vocabulary = list(range(0, target.vocab_size, 2))
    tokens, hidden = text(target, 41, seed=2)
    trained = trained_logits(student, target, vocabulary, tokens, hidden, depth=4)
    for last in (0, 1, 15, 16, 30):  # the index whose guesses are followed: tokens up to last + 1 are known
        run = Inference(student, target, vocabulary)
        features, blocks = run.features(hidden), [3, 1, 4, 0]
        split = last // 2
        for first, end in ((0, split), (split, last + 1)):
            if first == end:
                continue
            entered, states = run.forward(
                Rows(tokens[first + 1 : end + 1], range(first, end), 0, first, blocks, features=features[first:end])
            )
            np.testing.assert_allclose(entered, trained[0][first:end], **CLOSE)
        parent = states[-1]
        chain: list[Floats] = []
        for k in range(1, 4):
            chain.append(parent)
            logits, states = run.forward(
                Rows(
                    ids=tokens[last + 2 : last + 2 + k],
                    positions=range(last + 1, last + 1 + k),
                    first=0,
                    start=last + 1,
                    blocks=blocks,
                    ancestors=[(2 << row) - 1 for row in range(k)],
                    features=np.stack(chain),
                )
            )
            parent = states[-1]
            np.testing.assert_allclose(logits[-1], trained[k][last], **CLOSE)


def test_training_sees_what_the_drafter_sees(target: Target, student: EagleStudent) -> None:
    """The drafter itself, hidden states arriving in steps; then a text that goes on as it guessed, in training."""
    vocabulary = list(range(1, target.vocab_size))
    known, hidden = text(target, 23, seed=3)
    run = Inference(student, target, vocabulary)
    seen: dict[int, list[Floats]] = {}
    inner = run.model.forward
    passes = 0

    def forward(batch: object, cache: object) -> object:
        nonlocal passes
        logits, states = inner(batch, cache)  # type: ignore[arg-type]
        seen[passes] = list(run.ops.host(logits))
        passes += 1
        return logits, states

    run.model.forward = forward  # type: ignore[assignment, method-assign]
    drafter = EagleDrafter(run.model, run.cache, run.ops, index=0, token_ms=lambda: 1e9)
    features = run.features(hidden)
    for first, end in ((0, 8), (8, 9), (9, 17)):
        tokens = known[: end + 1]  # the last one is pending
        verdict = Verdict("s", tuple(range(end - first)), start=first, features=(features[first:end],))
        drafter.observe([verdict])
        seen.clear()
        passes = 0
        (proposal,) = drafter.propose([Ask("s", tokens, 3, max_guesses=40, blocks=(2, 5, 7, 1))])
        # Every guess the drafter looked into, as a text of its own.
        paths: dict[tuple[int, ...], int] = {}
        for i, parent in enumerate(proposal.parents):
            above = next((path for path, at in paths.items() if at == parent), ()) if parent >= 0 else ()
            paths[(*above, proposal.tokens[i])] = i
        compared = 0
        for path in [(), *paths]:
            line = [*tokens, *path]
            padded = np.concatenate([hidden[:end], np.full((len(line) + 1 - end, len(TAPS), HIDDEN), 9, np.float32)])
            trained = trained_logits(student, target, vocabulary, [*line, 0], padded, depth=len(path) + 1)
            expected = trained[len(path)][end - 1]
            compared += any(np.allclose(row, expected, **CLOSE) for rows in seen.values() for row in rows)
        assert passes >= 4
        assert compared == sum(map(len, seen.values()))


def test_an_index_sees_nothing_of_what_comes_later(target: Target, student: EagleStudent) -> None:
    """Neither hidden states after its own token, nor tokens after those it is told were guessed right."""
    tokens, hidden = text(target, 20, seed=4)
    vocabulary = list(range(target.vocab_size))
    before = trained_logits(student, target, vocabulary, tokens, hidden, depth=3)
    other_tokens, other_hidden = text(target, 20, seed=5)
    for k in range(3):
        at = 7
        mixed = [*tokens[: at + 2 + k], *other_tokens[at + 2 + k :]]
        states = np.concatenate([hidden[: at + 1], other_hidden[at + 1 :]])
        after = trained_logits(student, target, vocabulary, mixed, states, depth=3)
        np.testing.assert_array_equal(before[k][at], after[k][at])
        assert not np.allclose(before[k][at + 1], after[k][at + 1])
