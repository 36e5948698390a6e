"""Outcomes of a step for logits written by hand: paths, tokens, and replies that end inside an accepted run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fakes import make_request
from numpy.typing import NDArray

from paceline.engine.acceptor import Acceptor, Outcome
from paceline.engine.request import Finish
from paceline.engine.runner import StepOutput
from paceline.engine.sampling import token_logprob
from paceline.engine.scheduler import Plan, Row
from paceline.engine.sequence import Sequence
from paceline.kernels.backend import Ops, load
from paceline.kernels.sample import Draw
from paceline.spec.tree import TokenTree

VOCAB = 16


def row(known: int = 1, *, samples: bool = True, output: int = 1, **sampling: object) -> Row:
    seq = Sequence(make_request("r", [1, 2, 3], **sampling), arrival=0)  # type: ignore[arg-type]
    seq.tokens += [4] * output
    return Row(seq, known, samples)


OPS = load("reference")
BATCH: Any = None  # the reference chooses from logits alone


def logits(*choices: int) -> NDArray[np.float32]:
    """One row per choice, which is its argmax."""
    return np.eye(VOCAB, dtype=np.float32)[list(choices)]


def walk(
    pairs: list[tuple[Row, TokenTree]], choices: tuple[int, ...], context: int = 100, ops: Ops = OPS
) -> list[Outcome]:
    starts, total = [], 0
    for row_, tree in pairs:
        starts.append(total)
        total += len(tree) - row_.known + 1 if row_.samples else 0
    plan, trees = Plan([r for r, _ in pairs]), [t for _, t in pairs]
    out = StepOutput(BATCH, OPS.constant(logits(*choices)), None, tuple(starts))
    acceptor = Acceptor(ops, context)
    settled = ops.settle(out.logits, acceptor.draws(plan, trees), BATCH, None).result()
    return acceptor.walk(plan, trees, out, settled.tokens)


RUN = TokenTree.chain((4, 10, 11, 12, 13))  # the pending token and four guesses
CHOICES = (10, 11, 12, 13, 14)  # all of them right, and a bonus token


def test_a_chunk_that_samples_nothing_is_computed_whole() -> None:
    assert walk([(row(3, samples=False, output=0), TokenTree.chain((1, 2, 3)))], ()) == [Outcome((0, 1, 2))]


def test_a_whole_prompt_leads_to_one_token() -> None:
    assert walk([(row(3, output=0), TokenTree.chain((1, 2, 3)))], (7,)) == [Outcome((0, 1, 2), (7,))]


def test_all_right() -> None:
    assert walk([(row(), RUN)], CHOICES) == [Outcome((0, 1, 2, 3, 4), CHOICES)]


def test_all_wrong() -> None:
    assert walk([(row(), RUN)], (9, 11, 12, 13, 14)) == [Outcome((0,), (9,))]


def test_a_branch_off_the_line() -> None:
    tree = TokenTree((4, 10, 11, 10, 12), (-1, 0, 0, 2, 3))
    assert walk([(row(), tree)], (11, 0, 10, 12, 5)) == [Outcome((0, 2, 3, 4), (11, 10, 12, 5))]


def test_rows_of_several_sequences_are_not_confused() -> None:
    pairs = [
        (row(), TokenTree.chain((4, 10))),
        (row(2, samples=False, output=0), TokenTree.chain((1, 2))),
        (row(3, output=0), TokenTree.chain((1, 2, 3))),
        (row(), TokenTree.chain((4, 11))),
    ]
    assert walk(pairs, (10, 5, 6, 9, 8)) == [
        Outcome((0, 1), (10, 5)),
        Outcome((0, 1)),
        Outcome((0, 1, 2), (6,)),
        Outcome((0,), (9,)),
    ]


@pytest.mark.parametrize(
    ("sampling", "context", "path", "tokens", "finish"),
    [
        pytest.param({"stop_ids": {11}}, 100, (0, 1), (10, 11), "stop", id="stop inside the run"),
        pytest.param({"stop_ids": {10}}, 100, (0,), (10,), "stop", id="stop at once"),
        pytest.param({"stop_ids": {14}}, 100, (0, 1, 2, 3, 4), CHOICES, "stop", id="the bonus token stops"),
        pytest.param({"max_tokens": 3}, 100, (0, 1), (10, 11), "length", id="max_tokens inside the run"),
        pytest.param({"max_tokens": 6}, 100, (0, 1, 2, 3, 4), CHOICES, "length", id="max_tokens at the bonus token"),
        pytest.param({"max_tokens": 7}, 100, (0, 1, 2, 3, 4), CHOICES, None, id="one below max_tokens"),
        pytest.param({"max_tokens": 4, "stop_ids": {12}}, 100, (0, 1, 2), (10, 11, 12), "stop", id="both at once"),
        pytest.param({"max_tokens": 6, "stop_ids": {11}}, 100, (0, 1), (10, 11), "stop", id="stop before the length"),
        pytest.param({}, 7, (0, 1, 2), (10, 11, 12), "length", id="the context inside the run"),
        pytest.param({}, 10, (0, 1, 2, 3, 4), CHOICES, None, id="one below the context"),
    ],
)
def test_a_reply_ends_inside_an_accepted_run(
    sampling: dict[str, object], context: int, path: tuple[int, ...], tokens: tuple[int, ...], finish: Finish | None
) -> None:
    if "stop_ids" in sampling:
        sampling = {**sampling, "stop_ids": frozenset(sampling["stop_ids"])}  # type: ignore[call-overload]
    assert walk([(row(**sampling), RUN)], CHOICES, context) == [Outcome(path, tokens, finish)]


def test_logprobs_end_where_the_tokens_do() -> None:
    (outcome,) = walk([(row(logprobs=2, max_tokens=3), RUN)], CHOICES)
    assert outcome.logprobs == tuple(token_logprob(logits(token)[0], token, 2) for token in (10, 11))


def test_logprobs_come_only_when_asked_for() -> None:
    (outcome,) = walk([(row(), RUN)], CHOICES)
    assert outcome.logprobs is None


def test_draws_of_all_rows_know_their_positions_and_leave_to_the_walk_what_depends_on_it() -> None:
    """Four tokens are known: the next one stands at position 4, that after a guess of depth 1 at position 5."""
    tree = TokenTree((4, 10, 11, 12), (-1, 0, 0, 2))
    rows = [
        row(temperature=0.7, seed=9, top_k=2**70),
        row(3, samples=False, output=0),
        row(3, output=0, temperature=0.0),
        row(logprobs=0),
        row(presence_penalty=1.0),
    ]
    trees = [tree, TokenTree.chain((1, 2, 3)), TokenTree.chain((1, 2, 3)), TokenTree.chain((4,)), tree]
    draws = Acceptor(OPS, 100).draws(Plan(rows), trees)
    assert draws[:4] == [Draw(9, position, 0.7, 2**31 - 1) for position in (4, 5, 5, 6)]
    assert draws[4] is not None
    assert (draws[4].position, draws[4].temperature) == (3, 0.0)
    assert draws[5:] == [None] * 5


def test_what_was_drawn_is_not_drawn_again() -> None:
    def sample(rows: Any, draws: Any) -> list[int]:
        raise AssertionError

    assert walk([(row(), RUN)], CHOICES, ops=replace(OPS, sample=sample)) == [Outcome((0, 1, 2, 3, 4), CHOICES)]
