"""What is told of a step: one delta for each row that brought something."""

from __future__ import annotations

from dataclasses import replace

from fakes import make_request

from paceline.engine.acceptor import Outcome
from paceline.engine.deltas import deltas, warm_delta
from paceline.engine.scheduler import Plan, Row
from paceline.engine.sequence import Sequence
from paceline.spec.merge import merge
from paceline.spec.planner import Draft
from paceline.spec.proposer import Proposal
from paceline.spec.tree import TokenTree


def row(name: str, known: int = 1, **request: object) -> Row:
    base = replace(make_request(name, [1] * 20), **request)  # type: ignore[arg-type]
    return Row(Sequence(base, 0), known, samples=True)


def test_a_row_that_brought_nothing_is_not_told_and_one_that_ended_is() -> None:
    chain = Draft(TokenTree.chain((1, 1)), "prefill")
    plan = Plan([row("goes on", 2), row("warm", 2, prefill_only=True), row("first", 2)])
    outcomes = [Outcome((0, 1)), Outcome((0, 1), finish="prefilled"), Outcome((0, 1), (5,))]
    told = deltas(plan, [chain] * 3, outcomes, 2.5)
    assert [(delta.request_id, delta.tokens, delta.finish) for delta in told] == [
        ("warm", (), "prefilled"),
        ("first", (5,), None),
    ]
    assert {delta.step_ms for delta in told} == {2.5}


def test_accepted_guesses_are_told_with_their_source() -> None:
    guesses = merge([Proposal("suffix", (7, 8), (-1, 0), (0.5, 0.5)), Proposal("heads", (9,), (-1,), (0.5,))])
    picks = tuple(range(3))
    draft = Draft(TokenTree((1, 7, 8, 9), (-1, 0, 1, 0)), "best", "r", guesses, picks)
    (delta,) = deltas(Plan([row("r")]), [draft], [Outcome((0, 1, 2), (7, 8, 4))], 1.0)
    assert (delta.drafted, delta.accepted, delta.source, delta.reason) == (3, 2, "suffix", "best")


def test_what_was_all_there_is_told_with_its_hits() -> None:
    seq = row("w", prefill_only=True).seq
    seq.cached_tokens, seq.queued_ms = 16, 3.0
    delta = warm_delta(seq)
    assert (delta.request_id, delta.tokens, delta.finish) == ("w", (), "prefilled")
    assert (delta.cached_tokens, delta.queued_ms) == (16, 3.0)
