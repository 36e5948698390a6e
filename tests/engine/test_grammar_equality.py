"""Promise 1 for replies that follow a grammar: the same whatever the drafter, batch and preemptions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from equality import Oracle, Record, assert_equal, plain_replies, proposers
from fakes import RandomCheckpoint, Replies, assert_idle, run, tiny_engine
from grammars import TOO_WIDE, Formats

from paceline.engine.request import Request
from paceline.spec.forced import Forced
from paceline.spec.proposer import Proposer

VOCAB = 130  # of the model: more than the tokenizer has
SAMPLINGS: dict[str, dict[str, object]] = {
    "greedy": {},
    "seeded": {"temperature": 1.0},
    "penalties": {"temperature": 0.8, "presence_penalty": 0.5, "repetition_penalty": 1.2, "logprobs": 3},
    "filtered": {"temperature": 1.2, "top_k": 5, "top_p": 0.9, "min_p": 0.02},
}
DRAFTERS = ("suffix", "right", "wrong", "random", "merged", "grammar")


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB)


@pytest.fixture(scope="module")
def oracle(checkpoint: RandomCheckpoint) -> Oracle:
    return Oracle(checkpoint)


@pytest.fixture(scope="module")
def formats() -> Formats:
    return Formats(VOCAB)


def drafters(name: str, requests: list[Request], plain: Replies) -> list[Proposer]:
    return [Forced()] if name == "grammar" else proposers(name, requests, plain)


def assert_followed(formats: Formats, requests: list[Request], replies: Replies) -> None:
    ended = []
    for request in requests:
        name = request.id.rpartition("-")[0]
        if name:
            formats.assert_follows(name, replies.tokens(request.id), replies.finish(request.id))
            ended.append(replies.finish(request.id))
    assert "stop" in ended


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("name", DRAFTERS)
def test_any_drafter_gives_the_plain_reply(
    checkpoint: RandomCheckpoint, oracle: Oracle, formats: Formats, name: str, sampling: str, record_property: Record
) -> None:
    requests = formats.requests(SAMPLINGS[sampling])
    plain = plain_replies(checkpoint, requests)
    assert_followed(formats, requests, plain)
    together = run(tiny_engine(checkpoint, drafters(name, requests, plain)), requests)
    assert_equal(oracle, requests, plain, together, record_property)
    deltas = [delta for reply in together.deltas.values() for delta in reply]
    if name != "suffix":
        assert (sum(delta.accepted for delta in deltas) > 0) == (name != "wrong")
    if name == "grammar":
        assert all(delta.accepted == delta.drafted for delta in deltas), "what is forced always comes"


@pytest.mark.parametrize("name", ["none", "random", "grammar"])
def test_preemption_changes_nothing(
    checkpoint: RandomCheckpoint, oracle: Oracle, formats: Formats, name: str, record_property: Record
) -> None:
    requests = formats.requests({"temperature": 1.0})
    plain = plain_replies(checkpoint, requests)
    guessing = [] if name == "none" else drafters(name, requests, plain)
    engine = tiny_engine(checkpoint, guessing, blocks=7, max_nodes=6)
    replies = run(engine, requests)
    assert engine.stats().preemptions > 0
    assert_equal(oracle, requests, plain, replies, record_property)


def test_logprobs_are_those_of_the_tokens_that_may_come(checkpoint: RandomCheckpoint, formats: Formats) -> None:
    requests = formats.requests({"temperature": 1.0, "logprobs": 3})
    plain = plain_replies(checkpoint, requests)
    speculative = run(tiny_engine(checkpoint, drafters("random", requests, plain)), requests)
    for request in requests:
        expected = [entry for delta in plain.deltas[request.id] for entry in delta.logprobs or ()]
        got = [entry for delta in speculative.deltas[request.id] for entry in delta.logprobs or ()]
        matcher = request.sampling.grammar.matcher() if request.sampling.grammar is not None else None
        for one, other in zip(expected, got, strict=True):
            assert other.logprob == pytest.approx(one.logprob, abs=1e-3)
            assert [token for token, _ in other.top] == [token for token, _ in one.top]
            if matcher is not None:
                words = matcher.mask()
                assert all(int(words[token // 32]) >> token % 32 & 1 for token in (other.token, *dict(other.top)))
                if other.token not in request.sampling.stop_ids:
                    matcher.advance([other.token])


def test_guesses_that_cannot_come_cost_no_row(checkpoint: RandomCheckpoint, formats: Formats) -> None:
    """Guesses at random hardly ever fit: far fewer are verified for those that follow a grammar."""
    requests = formats.requests({})
    plain = plain_replies(checkpoint, requests)
    replies = run(tiny_engine(checkpoint, drafters("wrong", requests, plain)), requests)
    drafted = {
        request.id: sum(delta.drafted for delta in replies.deltas[request.id]) / len(replies.deltas[request.id])
        for request in requests
        if not request.id.startswith("object")  # whose strings may hold anything
    }
    free = drafted.pop(requests[-1].id)
    assert free > 5 * max(drafted.values())


@pytest.mark.parametrize("name", ["none", "random", "grammar"])
def test_a_grammar_that_breaks_ends_its_own_reply_alone(
    checkpoint: RandomCheckpoint, oracle: Oracle, formats: Formats, name: str, record_property: Record
) -> None:
    requests = formats.requests({"logprobs": 1})
    plain = plain_replies(checkpoint, requests)
    start = "start: /[a-z]{9}/ x\n" + TOO_WIDE.partition("\n")[2]
    sampling = replace(requests[0].sampling, grammar=formats.compile(start), max_tokens=30)
    broken = replace(requests[0], id="broken", prompt=(5,), sampling=sampling)
    alone = plain_replies(checkpoint, [broken])
    said = alone.tokens("broken")
    assert 0 < len(said) <= 9
    guessing = [] if name == "none" else drafters(name, [*requests, broken], Replies(plain.deltas | alone.deltas))
    engine = tiny_engine(checkpoint, guessing)
    replies = run(engine, [broken, *requests])
    assert_equal(oracle, requests, plain, replies, record_property)
    assert replies.tokens("broken") == said
    last = replies.deltas["broken"][-1]
    assert (last.finish, "too complex" in (last.error or "")) == ("error", True)
    assert sum(len(delta.logprobs or ()) for delta in replies.deltas["broken"]) == len(said)
    assert_idle(engine)
