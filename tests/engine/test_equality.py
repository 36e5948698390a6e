"""Promise 1: the reply is the model's own, whatever the drafter, batch, chunks, cache or preemptions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from equality import (
    DRAFTERS,
    SAMPLINGS,
    VOCAB,
    Oracle,
    Record,
    assert_equal,
    plain_replies,
    proposers,
    requests_for,
)
from fakes import RandomCheckpoint, make_request, run, tiny_engine

from paceline.engine.request import Speculation
from paceline.spec.suffix import Suffix


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB)


@pytest.fixture(scope="module")
def oracle(checkpoint: RandomCheckpoint) -> Oracle:
    return Oracle(checkpoint)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("name", DRAFTERS)
def test_any_drafter_gives_the_plain_reply(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, sampling: str, record_property: Record
) -> None:
    requests = requests_for(SAMPLINGS[sampling])
    plain = plain_replies(checkpoint, requests)
    speculative = run(tiny_engine(checkpoint, proposers(name, requests, plain)), requests, together=False)
    assert_equal(oracle, requests, plain, speculative, record_property)
    deltas = [delta for reply in speculative.deltas.values() for delta in reply]
    accepted = sum(delta.accepted for delta in deltas)
    if name == "suffix":
        assert accepted > 0 or sampling != "greedy", "greedy replies of a small model repeat themselves"
    else:
        assert sum(delta.drafted for delta in deltas) > 0
        assert (accepted > 0) == (name != "wrong")
    assert all(len(delta.tokens) == delta.accepted + 1 for delta in deltas)


@pytest.mark.parametrize("sampling", ["greedy", "seeded-penalties-bias"])
@pytest.mark.parametrize("name", [*DRAFTERS, "none"])
def test_batch_mates_change_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, sampling: str, record_property: Record
) -> None:
    requests = requests_for(SAMPLINGS[sampling], count=8)
    plain = plain_replies(checkpoint, requests)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    assert_equal(oracle, requests, plain, run(tiny_engine(checkpoint, guessing), requests), record_property)


@pytest.mark.parametrize("budget", [1, 2, 5, 16, 17, 64])
@pytest.mark.parametrize("name", ["none", "random"])
def test_chunk_size_changes_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, budget: int, record_property: Record
) -> None:
    requests = requests_for({"temperature": 0.8}, count=4)
    plain = plain_replies(checkpoint, requests)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    engine = tiny_engine(checkpoint, guessing, step_budget=budget, max_batch=min(4, budget))
    assert_equal(oracle, requests, plain, run(engine, requests), record_property)


@pytest.mark.parametrize("name", ["none", *DRAFTERS])
def test_preemption_changes_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, record_property: Record
) -> None:
    requests = requests_for({"temperature": 0.8}, count=8)
    plain = plain_replies(checkpoint, requests)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    engine = tiny_engine(checkpoint, guessing, blocks=8, max_nodes=6)
    replies = run(engine, requests)
    assert engine.stats().preemptions > 0
    assert_equal(oracle, requests, plain, replies, record_property)


@pytest.mark.parametrize("name", ["none", *DRAFTERS])
def test_prefix_hits_change_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, record_property: Record
) -> None:
    requests = requests_for({"temperature": 0.8})
    plain = plain_replies(checkpoint, requests)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    engine = tiny_engine(checkpoint, guessing)
    run(engine, requests)
    again = run(engine, requests)
    hits = {request.id: again.deltas[request.id][0].cached_tokens for request in requests}
    assert hits == {request.id: (len(request.prompt) - 1) // 16 * 16 for request in requests}
    assert_equal(oracle, requests, plain, again, record_property)


@pytest.mark.parametrize("mode", ["none", "auto"])
def test_prefix_hits_do_not_depend_on_speculation(checkpoint: RandomCheckpoint, mode: str) -> None:
    """A cache under pressure: what is evicted is the same with guesses and without."""
    engine = tiny_engine(checkpoint, [Suffix()], blocks=24, max_batch=4)
    hits = []
    for turn in range(3):
        requests = requests_for({}, count=8, mode=mode)
        replies = run(engine, requests, together=False)
        hits += [replies.deltas[request.id][0].cached_tokens for request in requests if turn]
    assert sum(hits) > 0
    # The same list in both modes; recorded from a run with guesses off.
    plain = tiny_engine(checkpoint, blocks=24, max_batch=4)
    expected = []
    for turn in range(3):
        requests = requests_for({}, count=8)
        replies = run(plain, requests, together=False)
        expected += [replies.deltas[request.id][0].cached_tokens for request in requests if turn]
    assert hits == expected


def test_logprobs_are_those_of_plain_decoding(checkpoint: RandomCheckpoint) -> None:
    requests = requests_for({"temperature": 0.8, "logprobs": 3, "frequency_penalty": 0.5})
    plain = plain_replies(checkpoint, requests)
    speculative = run(tiny_engine(checkpoint, proposers("random", requests, plain)), requests)
    for request in requests:
        expected = [entry for delta in plain.deltas[request.id] for entry in delta.logprobs or ()]
        got = [entry for delta in speculative.deltas[request.id] for entry in delta.logprobs or ()]
        assert [entry.token for entry in got] == plain.tokens(request.id)
        for one, other in zip(expected, got, strict=True):
            assert other.logprob == pytest.approx(one.logprob, abs=1e-3)
            assert len(other.top) == 3
            assert other.top[0][1] >= other.logprob
            assert [value for _, value in other.top] == pytest.approx([value for _, value in one.top], abs=1e-3)


@pytest.mark.parametrize("name", DRAFTERS)
def test_replies_end_inside_an_accepted_run(checkpoint: RandomCheckpoint, name: str) -> None:
    """max_tokens is honoured to the token; a stop id ends the reply even where more guesses were right."""
    base = requests_for({}, count=3)
    plain = plain_replies(checkpoint, base)
    for request in base:
        full = plain.tokens(request.id)
        for length in range(1, 9):
            short = make_request(request.id, request.prompt, max_tokens=length)
            replies = run(tiny_engine(checkpoint, proposers(name, base, plain)), [short])
            assert replies.tokens(request.id) == full[:length]
            assert replies.finish(request.id) == "length"
            stop = full[length]
            stopped = make_request(request.id, request.prompt, max_tokens=40, stop_ids=frozenset({stop}))
            replies = run(tiny_engine(checkpoint, proposers(name, base, plain)), [stopped])
            assert replies.tokens(request.id) == full[: full.index(stop) + 1]
            assert replies.finish(request.id) == "stop"


@pytest.mark.parametrize("sampling", ["greedy", "seeded-penalties-bias"])
def test_predictions_and_earlier_replies_change_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, sampling: str, record_property: Record
) -> None:
    """Right, changed in places and wrong predictions; then all again, with what was replied before to draft from."""
    base = requests_for(SAMPLINGS[sampling])
    plain = plain_replies(checkpoint, base)
    requests = []
    for i, request in enumerate(base):
        expected = plain.tokens(request.id)
        changed = [(token + 1) % VOCAB if place % 7 == 6 else token for place, token in enumerate(expected)]
        prediction = (expected, changed, [(token + 1) % VOCAB for token in expected])[i % 3]
        speculation = Speculation(prediction=tuple(prediction), reuse_key="key" if i % 2 else "")
        requests.append(replace(request, speculation=speculation))
    engine = tiny_engine(checkpoint, [Suffix()])
    for _ in range(2):
        speculative = run(engine, requests)
        assert_equal(oracle, requests, plain, speculative, record_property)
    accepted = [sum(delta.accepted for delta in speculative.deltas[request.id]) for request in requests]
    assert accepted[0] > len(plain.tokens("r0")) / 2  # as predicted
    assert accepted[5] > len(plain.tokens("r5")) / 2  # as replied before
