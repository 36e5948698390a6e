"""What is told of a step: one delta for each row that brought something."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import replace

from fakes import make_request

from paceline.engine.acceptor import Outcome
from paceline.engine.deltas import deltas, warm_delta
from paceline.engine.request import Speculation, TreeTrace
from paceline.engine.scheduler import Plan, Row
from paceline.engine.sequence import Sequence
from paceline.spec.merge import merge
from paceline.spec.planner import Draft
from paceline.spec.proposer import Proposal
from paceline.spec.tree import TokenTree

TRACED = Speculation(trace=True)


def nobody(draft: Draft) -> Seq[float]:
    raise AssertionError("no request wants a trace")


def row(name: str, known: int = 1, **request: object) -> Row:
    base = replace(make_request(name, [1] * 20), **request)  # type: ignore[arg-type]
    return Row(Sequence(base, 0), known, samples=True)


def test_a_row_that_brought_nothing_is_not_told_and_one_that_ended_is() -> None:
    chain = Draft(TokenTree.chain((1, 1)), "prefill")
    plan = Plan([row("goes on", 2), row("warm", 2, prefill_only=True), row("first", 2)])
    outcomes = [Outcome((0, 1)), Outcome((0, 1), finish="prefilled"), Outcome((0, 1), (5,))]
    told = deltas(plan, [chain] * 3, outcomes, 2.5, nobody)
    assert [(delta.request_id, delta.tokens, delta.finish) for delta in told] == [
        ("warm", (), "prefilled"),
        ("first", (5,), None),
    ]
    assert {delta.step_ms for delta in told} == {2.5}


def test_accepted_guesses_are_told_with_their_source() -> None:
    guesses = merge([Proposal("suffix", (7, 8), (-1, 0), (0.5, 0.5)), Proposal("heads", (9,), (-1,), (0.5,))])
    picks = tuple(range(3))
    draft = Draft(TokenTree((1, 7, 8, 9), (-1, 0, 1, 0)), "best", "r", guesses, picks)
    (delta,) = deltas(Plan([row("r")]), [draft], [Outcome((0, 1, 2), (7, 8, 4))], 1.0, nobody)
    assert (delta.drafted, delta.accepted, delta.source, delta.reason) == (3, 2, "suffix", "best")


def test_what_was_all_there_is_told_with_its_hits() -> None:
    seq = row("w", prefill_only=True).seq
    seq.cached_tokens, seq.queued_ms = 16, 3.0
    delta = warm_delta(seq)
    assert (delta.request_id, delta.tokens, delta.finish) == ("w", (), "prefilled")
    assert (delta.cached_tokens, delta.queued_ms) == (16, 3.0)


GUESSES = merge([Proposal("suffix", (7, 8), (-1, 0), (0.5, 0.25)), Proposal("heads", (9, 7), (-1, -1), (0.5, 0.75))])


def traced(known: int, draft: Draft, outcome: Outcome) -> TreeTrace | None:
    plan = Plan([row("r", known, speculation=TRACED)])
    (delta,) = deltas(plan, [draft], [outcome], 1.0, lambda draft: [guess / 10 for guess in draft.picks])
    return delta.trace


def test_a_trace_has_all_nodes_and_what_became_of_them() -> None:
    draft = Draft(TokenTree((1, 7, 8, 9), (-1, 0, 1, 0)), "best", "r", GUESSES, (0, 1, 2))
    assert traced(1, draft, Outcome((0, 1, 2), (7, 8, 4))) == TreeTrace(
        tokens=(1, 7, 8, 9),
        parents=(-1, 0, 1, 0),
        sources=("", "heads+suffix", "suffix", "heads"),
        estimates=(1.0, 0.75, 0.25, 0.5),
        chances=(1.0, 0.0, 0.1, 0.2),
        path=(0, 1, 2),
        bonus=4,
    )


def test_of_a_prompt_the_last_token_alone_is_traced() -> None:
    trace = traced(3, Draft(TokenTree.chain((5, 6, 1)), "prefill"), Outcome((0, 1, 2), (7,)))
    assert trace == TreeTrace(
        tokens=(1,), parents=(-1,), sources=("",), estimates=(1.0,), chances=(1.0,), path=(0,), bonus=7
    )


def test_where_no_token_could_be_chosen_there_is_no_bonus() -> None:
    draft = Draft(TokenTree((1, 7), (-1, 0)), "best", "r", GUESSES, (0,))
    trace = traced(1, draft, Outcome((0, 1), (7,), "error"))
    assert trace is not None
    assert (trace.path, trace.bonus, trace.emitted) == ((0, 1), None, ((7, "heads+suffix"),))


def test_where_no_token_was_to_be_chosen_there_is_no_trace() -> None:
    warm = Row(Sequence(replace(make_request("w", [1] * 20), speculation=TRACED), 0), 2, samples=False)
    chain = Draft(TokenTree.chain((1, 1)), "prefill")
    (delta,) = deltas(Plan([warm]), [chain], [Outcome((0, 1), finish="prefilled")], 1.0, nobody)
    assert delta.trace is None
