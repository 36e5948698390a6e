"""What a step tells of its drafting, and whom it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import RandomCheckpoint, Scripted, finish, make_request, tiny_engine

from paceline.engine.request import Request, Speculation
from paceline.spec.guard import Guard
from paceline.spec.proposer import Ask, Proposal

VOCAB = 61
PROMPT = list(range(20))


class Recording(Guard):
    """Always gives one answer, and keeps what it was asked and told."""

    def __init__(self, answer: bool) -> None:
        super().__init__()
        self.answer = answer
        self.asked: list[tuple[int, bool]] = []
        self.told: list[tuple[int, bool, int]] = []

    def drafts(self, sequences: int, measured: bool) -> bool:
        self.asked.append((sequences, measured))
        return self.answer

    def observe(self, sequences: int, drafted: bool, tokens: int, ms: float) -> None:
        assert ms > 0
        self.told.append((sequences, drafted, tokens))


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, context_length=128)


def right(checkpoint: RandomCheckpoint, *requests: Request) -> Scripted:
    """A drafter that knows the replies."""
    plain = finish(tiny_engine(checkpoint), *requests)
    return Scripted("right", {request.prompt: plain.tokens(request.id) for request in requests}, VOCAB)


@pytest.mark.parametrize("late", [PROMPT[1:18], [*PROMPT[:16], 5]], ids=["a chunk", "one token behind a cached prefix"])
def test_the_guard_hears_of_steps_that_only_decoded(checkpoint: RandomCheckpoint, late: list[int]) -> None:
    """Not of those in which a prompt ended, though all their sequences decode when they are over."""
    requests = [make_request("a", PROMPT, max_tokens=41), make_request("late", late, max_tokens=41)]
    guard = Recording(True)
    engine = tiny_engine(checkpoint, [right(checkpoint, *requests)], max_nodes=5, guard=guard)
    engine.submit(requests[0])
    engine.step(lambda deltas: None)
    engine.step(lambda deltas: None)
    assert (guard.asked, guard.told) == ([(0, False), (1, True)], [(1, True, 5)])
    engine.submit(requests[1])
    engine.step(lambda deltas: None)
    assert guard.asked[2:] == [(1, False)]
    assert guard.told[1:] == []
    engine.step(lambda deltas: None)
    assert guard.asked[3:] == [(2, True)]
    assert guard.told[1:] == [(2, True, 10)]


def test_a_guard_that_says_no_makes_plain_steps_of_the_same_text(checkpoint: RandomCheckpoint) -> None:
    requests = [make_request(name, [i, *PROMPT], max_tokens=10) for i, name in enumerate("ab")]
    guard, drafter = Recording(False), right(checkpoint, *requests)
    replies = finish(tiny_engine(checkpoint, [drafter], guard=guard), *requests)
    for request in requests:
        assert replies.tokens(request.id) == drafter._continuations[request.prompt]
        assert [len(delta.tokens) for delta in replies.deltas[request.id]] == [1] * 10
        assert all(delta.drafted == 0 for delta in replies.deltas[request.id])
        reasons = [delta.reason for delta in replies.deltas[request.id]]
        assert reasons == ["prefill", *["not worth it"] * 8, "no room"]
    assert guard.told == [(2, False, 2)] * 8  # the first token comes with the prompt, the last needs no guess


class Short(Scripted):
    """Knows less far than it may guess."""

    def __init__(self, name: str, guesses: int, truth: Scripted) -> None:
        super().__init__("right", truth._continuations, VOCAB)
        self.name, self._guesses = name, guesses

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        return super().propose([ask._replace(max_guesses=min(ask.max_guesses, self._guesses)) for ask in asks])


def test_the_source_names_all_whose_guesses_were_accepted(checkpoint: RandomCheckpoint) -> None:
    """Not only those who had a part in the last one."""
    request = make_request("r", PROMPT, max_tokens=9)
    truth = right(checkpoint, request)
    engine = tiny_engine(checkpoint, [Short("b", 1, truth), Short("c", 4, truth), Short("a", 2, truth)], max_nodes=4)
    deltas = finish(engine, request).deltas["r"]
    assert [(delta.accepted, delta.source) for delta in deltas] == [(0, ""), (3, "a+b+c"), (3, "a+b+c")]


@pytest.mark.parametrize("server", [1, 8])
@pytest.mark.parametrize("request_", [1, 8])
def test_off_is_what_the_request_or_the_server_allows_no_guesses_for(
    checkpoint: RandomCheckpoint, server: int, request_: int
) -> None:
    request = replace(make_request("r", PROMPT, max_tokens=4), speculation=Speculation(max_nodes=request_))
    deltas = finish(tiny_engine(checkpoint, [right(checkpoint, request)], max_nodes=server), request).deltas["r"]
    wanted = ["best"] if server == request_ == 8 else ["off"] * 3
    assert [delta.reason for delta in deltas] == ["prefill", *wanted]
