"""Promise 1: the reply is the model's own, whatever the drafter, batch, chunks, cache or preemptions."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from equality import Oracle, assert_equal
from fakes import RandomCheckpoint, Replies, Scripted, make_request, run, tiny_engine

from paceline.engine.request import Request
from paceline.spec.ngram import NGram
from paceline.spec.proposer import Proposer

VOCAB = 97
SAMPLINGS: dict[str, dict[str, object]] = {
    "greedy": {},
    "seeded": {"temperature": 0.8},
    "filtered": {"temperature": 1.1, "top_k": 20, "top_p": 0.9, "min_p": 0.02},
    "penalties": {"repetition_penalty": 1.3, "frequency_penalty": 0.4, "presence_penalty": 0.3},
    "seeded-penalties-bias": {"temperature": 0.8, "presence_penalty": 0.5, "logit_bias": {3: 4.0, 5: -100.0}},
    "stop-ids": {"stop_ids": frozenset(range(0, VOCAB, 9))},
}
DRAFTERS = ("ngram", "right", "wrong", "random")

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB)


@pytest.fixture(scope="module")
def oracle(checkpoint: RandomCheckpoint) -> Oracle:
    return Oracle(checkpoint)


def requests_for(sampling: dict[str, object], count: int = 6, mode: str = "auto") -> list[Request]:
    """Prompts that repeat themselves, so that n-grams match, of lengths around block borders; seeds differ."""
    pick = random.Random(11)
    requests = []
    for i in range(count):
        phrase = [pick.randrange(VOCAB) for _ in range(pick.randint(3, 9))]
        prompt = (phrase * 12)[: pick.choice((1, 15, 16, 17, 33, 70))]
        requests.append(make_request(f"r{i}", prompt, mode=mode, max_tokens=30 + i, seed=i * 77, **sampling))
    return requests


def plain_replies(checkpoint: RandomCheckpoint, requests: Sequence[Request]) -> Replies:
    """Alone, without guesses, whole prompts at once."""
    return run(tiny_engine(checkpoint, step_budget=4096), requests, together=False)


def drafter(name: str, requests: Sequence[Request], plain: Replies) -> Proposer:
    if name == "ngram":
        return NGram()
    return Scripted(name, {request.prompt: plain.tokens(request.id) for request in requests}, VOCAB)


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("name", DRAFTERS)
def test_any_drafter_gives_the_plain_reply(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, sampling: str, record_property: Record
) -> None:
    requests = requests_for(SAMPLINGS[sampling])
    plain = plain_replies(checkpoint, requests)
    speculative = run(tiny_engine(checkpoint, [drafter(name, requests, plain)]), requests, together=False)
    assert_equal(oracle, requests, plain, speculative, record_property)
    deltas = [delta for reply in speculative.deltas.values() for delta in reply]
    accepted = sum(delta.accepted for delta in deltas)
    if name == "ngram":
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
    proposers = [] if name == "none" else [drafter(name, requests, plain)]
    assert_equal(oracle, requests, plain, run(tiny_engine(checkpoint, proposers), requests), record_property)


@pytest.mark.parametrize("budget", [1, 2, 5, 16, 17, 64])
@pytest.mark.parametrize("name", ["none", "random"])
def test_chunk_size_changes_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, budget: int, record_property: Record
) -> None:
    requests = requests_for({"temperature": 0.8}, count=4)
    plain = plain_replies(checkpoint, requests)
    proposers = [] if name == "none" else [drafter(name, requests, plain)]
    engine = tiny_engine(checkpoint, proposers, step_budget=budget, max_batch=min(4, budget))
    assert_equal(oracle, requests, plain, run(engine, requests), record_property)


@pytest.mark.parametrize("name", ["none", *DRAFTERS])
def test_preemption_changes_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, record_property: Record
) -> None:
    requests = requests_for({"temperature": 0.8}, count=8)
    plain = plain_replies(checkpoint, requests)
    proposers = [] if name == "none" else [drafter(name, requests, plain)]
    engine = tiny_engine(checkpoint, proposers, blocks=8, max_nodes=6)
    replies = run(engine, requests)
    assert engine.stats().preemptions > 0
    assert_equal(oracle, requests, plain, replies, record_property)


@pytest.mark.parametrize("name", ["none", *DRAFTERS])
def test_prefix_hits_change_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, name: str, record_property: Record
) -> None:
    requests = requests_for({"temperature": 0.8})
    plain = plain_replies(checkpoint, requests)
    proposers = [] if name == "none" else [drafter(name, requests, plain)]
    engine = tiny_engine(checkpoint, proposers)
    run(engine, requests)
    again = run(engine, requests)
    hits = {request.id: again.deltas[request.id][0].cached_tokens for request in requests}
    assert hits == {request.id: (len(request.prompt) - 1) // 16 * 16 for request in requests}
    assert_equal(oracle, requests, plain, again, record_property)


@pytest.mark.parametrize("mode", ["none", "auto"])
def test_prefix_hits_do_not_depend_on_speculation(checkpoint: RandomCheckpoint, mode: str) -> None:
    """A cache under pressure: what is evicted is the same with guesses and without."""
    engine = tiny_engine(checkpoint, [NGram()], blocks=24, max_batch=4)
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
    speculative = run(tiny_engine(checkpoint, [drafter("random", requests, plain)]), requests)
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
            replies = run(tiny_engine(checkpoint, [drafter(name, base, plain)]), [short])
            assert replies.tokens(request.id) == full[:length]
            assert replies.finish(request.id) == "length"
            stop = full[length]
            stopped = make_request(request.id, request.prompt, max_tokens=40, stop_ids=frozenset({stop}))
            replies = run(tiny_engine(checkpoint, [drafter(name, base, plain)]), [stopped])
            assert replies.tokens(request.id) == full[: full.index(stop) + 1]
            assert replies.finish(request.id) == "stop"
