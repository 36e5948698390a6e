"""How sequences end before their time: aborted, cut, and with a step that breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from fakes import RandomCheckpoint, Replies, Scripted, assert_idle, finish, make_request, tiny_engine

from paceline.engine.engine import Engine
from paceline.spec.proposer import Ask, Proposal
from paceline.spec.suffix import Suffix

VOCAB = 61
PROMPT = list(range(20))


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, context_length=128)


def hits(engine: Engine, tokens: Sequence[int]) -> int:
    """Tokens of a prompt the prefix cache knows."""
    return finish(engine, make_request("probe", tokens, max_tokens=1)).deltas["probe"][0].cached_tokens


def test_abort_frees_the_blocks_at_once_in_every_state(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, [Suffix()], max_batch=2, step_budget=16)
    replies = Replies()
    engine.submit(make_request("decoding", PROMPT[:5], max_tokens=50))
    for _ in range(3):
        engine.step(replies)
    engine.submit(make_request("prefilling", range(20, 60)))
    engine.submit(make_request("waiting", range(20, 60)))
    engine.step(replies)
    states = {seq.id: (bool(seq.blocks), seq.num_computed, seq.pending) for seq in engine.scheduler}
    assert states["prefilling"][0]
    assert 0 < states["prefilling"][1] < 40
    assert states["waiting"] == (False, 0, 40)
    engine.abort("nobody")
    for name in ("waiting", "prefilling", "decoding"):
        seq = engine.scheduler.find(name)
        assert seq is not None
        held, mine = engine.stats().blocks_held, len(seq.blocks)
        engine.abort(name)
        engine.check()
        assert engine.stats().blocks_held == held - mine
        count = len(replies.deltas.get(name, []))
        engine.step(replies)
        assert len(replies.deltas.get(name, [])) == count
    assert_idle(engine)
    assert finish(engine, make_request("next", PROMPT, max_tokens=5)).finish("next") == "length"


def run_until(engine: Engine, done: Callable[[], bool], replies: Replies) -> None:
    while not done():
        engine.step(replies)
        engine.check()


def test_what_follows_a_cut_is_not_found_again(checkpoint: RandomCheckpoint) -> None:
    replies = Replies()
    for kept, found in ((40, 48), (30, 48), (28, 48), (27, 32), (5, 16), (0, 16)):
        engine = tiny_engine(checkpoint)
        engine.submit(make_request("r", PROMPT, max_tokens=100))
        replies.deltas.clear()
        run_until(engine, lambda: len(replies.tokens("r")) == 41, replies)
        tokens = PROMPT + replies.tokens("r")
        engine.cut("r", kept)
        assert_idle(engine)
        assert hits(engine, tokens[:50]) == found, kept


def test_what_follows_a_cut_is_not_found_again_when_the_sequence_was_preempted(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint, blocks=8), Replies()
    engine.submit(make_request("old", [1] * 20, max_tokens=40))
    engine.step(replies)
    engine.submit(make_request("young", PROMPT, max_tokens=100))
    run_until(engine, lambda: len(replies.tokens("young")) == 41, replies)
    young = engine.scheduler.find("young")
    assert young is not None
    engine.scheduler._preempt(engine.scheduler.schedule(), young)
    engine.cut("young", 5)
    engine.abort("old")
    assert_idle(engine)
    assert hits(engine, [*PROMPT, *replies.tokens("young")][:50]) == 16


def test_failing_ends_everyone_with_an_error_and_the_engine_goes_on(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint, [Suffix()], max_batch=1), Replies()
    for name in ("running", "waiting"):
        engine.submit(make_request(name, PROMPT))
    engine.step(replies)
    engine.fail("The step broke.", replies)
    assert_idle(engine)
    for name in ("running", "waiting"):
        last = replies.deltas[name][-1]
        assert (last.finish, last.error, last.tokens) == ("error", "The step broke.", ())
    request = make_request("next", PROMPT)
    assert finish(engine, request).tokens("next") == finish(tiny_engine(checkpoint), request).tokens("next")


def test_a_step_that_breaks_late_leaves_no_reader_waiting(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The device fails while entries are moved, in the very step that ends a reply: that reader must hear of it too."""
    engine, replies = tiny_engine(checkpoint), Replies()
    for name, length in (("short", 3), ("long", 30)):
        engine.submit(make_request(name, PROMPT, max_tokens=length))
    for _ in range(2):
        engine.step(replies)

    def broken(moves: object) -> None:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(engine._runner, "move", broken)
    with pytest.raises(RuntimeError):
        engine.step(replies)
    engine.fail("The step broke.", replies)
    assert_idle(engine)
    assert {name: replies.finish(name) for name in replies.deltas} == {"short": "error", "long": "error"}


@pytest.mark.parametrize("place", ["first", "second", "deltas"])
def test_what_a_broken_step_had_retired_already_is_told_its_end(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Two replies end in one step, and it breaks while their blocks are given back, or before anybody is told."""
    engine, replies = tiny_engine(checkpoint), Replies()
    for name, length in (("a", 2), ("b", 2), ("long", 30)):
        engine.submit(make_request(name, PROMPT, max_tokens=length))
    engine.step(replies)
    release, calls = engine.pages.release, []

    def broken(*given: object) -> None:
        calls.append(given)
        if place == "second" and len(calls) < 2:
            release(*given)  # type: ignore[arg-type]
            return
        raise RuntimeError("the books are wrong")

    with monkeypatch.context() as patch:
        if place == "deltas":
            patch.setattr("paceline.engine.engine.deltas", broken)
        else:
            patch.setattr(engine.pages, "release", broken)
        with pytest.raises(RuntimeError):
            engine.step(replies)
    engine.fail("The step broke.", replies)
    assert {name: replies.finish(name) for name in replies.deltas} == {"a": "error", "b": "error", "long": "error"}
    assert engine.has_work is False


def test_entries_of_a_broken_step_are_not_found_again(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Accepted entries that were never moved into place must not be shared with the next request."""
    request = make_request("r", PROMPT, max_tokens=100)
    truth = finish(tiny_engine(checkpoint), request).tokens("r")
    follower = make_request("next", PROMPT + truth[:60], mode="none", max_tokens=10)
    plain = finish(tiny_engine(checkpoint), follower).tokens("next")

    class OffLine(Scripted):
        """The whole truth behind a wrong guess, so that every accepted guess stands off the line."""

        def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
            return [self._behind_a_wrong_one(proposal) for proposal in super().propose(asks)]

        def _behind_a_wrong_one(self, right: Proposal) -> Proposal:
            n = len(right.tokens)
            tokens = ((right.tokens[0] + 1) % VOCAB, *right.tokens[:-1])
            return right._replace(
                tokens=tokens, parents=(-1, -1, *range(1, n - 1)), probabilities=(0.99, *[0.9] * (n - 1))
            )

    engine, replies = tiny_engine(checkpoint, [OffLine("right", {request.prompt: truth}, VOCAB)]), Replies()
    engine.submit(request)
    engine.step(replies)

    def broken(moves: Sequence[object]) -> None:
        assert moves
        raise RuntimeError("the device is gone")

    with monkeypatch.context() as patch:
        patch.setattr(engine._runner, "move", broken)
        with pytest.raises(RuntimeError):
            engine.step(replies)
    engine.fail("The step broke.", replies)
    assert finish(engine, follower).tokens("next") == plain


@pytest.mark.parametrize("place", ["post", "observe"])
def test_what_ended_is_forgotten_whatever_breaks_afterwards(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Nobody lists it any more, so nobody else could say it."""

    def broken(*given: object) -> None:
        raise RuntimeError("the reader is gone")

    drafter = Suffix()
    engine, replies = tiny_engine(checkpoint, [drafter]), Replies()
    engine.submit(make_request("r", PROMPT, max_tokens=3))
    engine.step(replies)
    engine.step(replies)
    assert "r" in drafter._texts
    if place == "observe":
        monkeypatch.setattr(engine._planner, "observe_step", broken)
    with pytest.raises(RuntimeError):
        engine.step(replies if place == "observe" else broken)
    assert "r" not in drafter._texts
    assert_idle(engine)
