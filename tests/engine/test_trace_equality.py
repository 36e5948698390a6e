"""A trace tells what happened, and changes nothing: for drafters of every temper, however tokens are chosen."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from equality import DRAFTERS, SAMPLINGS, VOCAB, Record, assert_equal, plain_replies, proposers, requests_for
from fakes import RandomCheckpoint, Replies, make_request, run, tiny_engine

from paceline.engine.request import Request, TreeTrace


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB)


def traced(request: Request) -> Request:
    return replace(request, speculation=replace(request.speculation, trace=True))


def assert_told(request: Request, replies: Replies) -> list[TreeTrace]:
    """Each trace agrees with its delta and with the reply before it."""
    known = [*request.prompt]
    traces = []
    for delta in replies.deltas[request.id]:
        trace = delta.trace
        assert trace is not None
        assert trace.tokens[0] == known[-1]
        assert tuple(token for token, _ in trace.emitted) == delta.tokens
        assert (len(trace.tokens) - 1, len(trace.path) - 1) == (delta.drafted, delta.accepted)
        assert {name for _, label in trace.emitted for name in label.split("+")} == {"", *delta.source.split("+")}
        assert trace.emitted[-1] == (delta.tokens[-1], "")
        for above, node in pairwise(trace.path):
            assert trace.parents[node] == above
        assert (trace.parents[0], trace.sources[0]) == (-1, "")
        assert all(0 <= parent < node for node, parent in enumerate(trace.parents[1:], start=1))
        assert all(trace.sources[1:])
        for values in (trace.estimates, trace.chances):
            assert (len(values), values[0]) == (len(trace.tokens), 1.0)
            assert all(0.0 <= value <= 1.0 for value in values)
        known += delta.tokens
        traces.append(trace)
    return traces


@pytest.mark.parametrize("sampling", ["greedy", "filtered", "seeded-penalties-bias", "stop-ids"])
@pytest.mark.parametrize("name", ["none", *DRAFTERS])
def test_traced_replies_are_the_plain_ones(
    checkpoint: RandomCheckpoint, name: str, sampling: str, record_property: Record
) -> None:
    """Beside others that are not traced, and whose deltas have none."""
    base = requests_for(SAMPLINGS[sampling])
    plain = plain_replies(checkpoint, base)
    guessing = [] if name == "none" else proposers(name, base, plain)
    requests = [traced(request) if i % 3 else request for i, request in enumerate(base)]
    replies = run(tiny_engine(checkpoint, guessing), requests)
    assert_equal(None, requests, plain, replies, record_property)
    for i, request in enumerate(requests):
        if i % 3:
            assert_told(request, replies)
        else:
            assert all(delta.trace is None for delta in replies.deltas[request.id])


@pytest.mark.parametrize("name", ["right", "random"])
def test_a_reply_that_ends_inside_an_accepted_run(checkpoint: RandomCheckpoint, name: str) -> None:
    """The token it ends with is the last of the trace, though it was guessed and more behind it."""
    base = make_request("r", [5, 9, 2] * 6)
    plain = plain_replies(checkpoint, [base])
    full = plain.tokens("r")
    for place in range(1, 9):
        limits: list[dict[str, object]] = [
            {"max_tokens": place},
            {"max_tokens": 40, "stop_ids": frozenset({full[place]})},
        ]
        for limit in limits:
            request = traced(make_request("r", base.prompt, **limit))  # type: ignore[arg-type]
            replies = run(tiny_engine(checkpoint, proposers(name, [base], plain)), [request])
            emitted = [token for trace in assert_told(request, replies) for token, _ in trace.emitted]
            assert emitted == replies.tokens("r") == full[: len(emitted)]


def test_chunks_and_preemptions_leave_the_root_what_it_is(checkpoint: RandomCheckpoint) -> None:
    requests = [traced(request) for request in requests_for({"temperature": 0.8}, count=8)]
    plain = plain_replies(checkpoint, requests)
    engine = tiny_engine(checkpoint, proposers("random", requests, plain), blocks=8, max_nodes=6, step_budget=24)
    replies = run(engine, requests)
    assert engine.stats().preemptions > 0
    for request in requests:
        traces = assert_told(request, replies)
        assert len(traces[0].tokens) == 1


def test_chances_are_what_was_learnt_before_the_step(checkpoint: RandomCheckpoint) -> None:
    """A drafter that is always wrong says one half each time, and is believed less and less."""
    request = traced(make_request("r", [5, 9, 2] * 6, max_tokens=12))
    plain = plain_replies(checkpoint, [request])
    traces = assert_told(request, run(tiny_engine(checkpoint, proposers("wrong", [request], plain)), [request]))
    guessed = [trace for trace in traces if len(trace.tokens) > 1]
    assert len(guessed) > 5
    assert {estimate for trace in guessed for estimate in trace.estimates[1:]} == {0.5}
    assert guessed[0].chances[1:] == guessed[0].estimates[1:]  # nothing was known yet
    first = [trace.chances[1] for trace in guessed]
    assert first == sorted(first, reverse=True)
    assert first[-1] < first[0] / 2
