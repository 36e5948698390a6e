"""Prompts that are computed ahead of the request that will ask for a reply to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import RandomCheckpoint, Replies, assert_idle, finish, make_request, run, tiny_engine

from paceline.engine.acceptor import Outcome
from paceline.engine.engine import Engine
from paceline.engine.request import Delta, Priority, Request
from paceline.engine.runner import StepOutput
from paceline.engine.scheduler import Plan
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.proposer import Verdict
from paceline.spec.suffix import Suffix

PROMPT = [*range(3 * BLOCK_SIZE)]


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(61, context_length=128)


def warm(name: str, prompt: Sequence[int], priority: Priority = "normal") -> Request:
    return replace(make_request(name, prompt), prefill_only=True, priority=priority)


def only(replies: Replies, name: str) -> Delta:
    (delta,) = replies.deltas[name]
    assert (delta.tokens, delta.finish, delta.logprobs, delta.drafted) == ((), "prefilled", None, 0)
    return delta


def hits(engine: Engine, tokens: Sequence[int]) -> int:
    return finish(engine, make_request("probe", tokens, max_tokens=1)).deltas["probe"][0].cached_tokens


@pytest.mark.parametrize("tail", [0, 1, BLOCK_SIZE - 1])
def test_full_blocks_are_computed_and_no_more(checkpoint: RandomCheckpoint, tail: int) -> None:
    engine = tiny_engine(checkpoint, [Suffix()])
    prompt = [*PROMPT, *[7] * tail]
    engine.submit(warm("w", prompt))
    plan = engine.scheduler.schedule()
    assert [(row.known, row.samples, row.guesses) for row in plan.rows] == [(len(PROMPT), False, 0)]
    replies = run(engine, [])
    assert only(replies, "w").cached_tokens == 0
    assert_idle(engine)
    assert engine.stats().blocks_cached == 3
    assert (engine.stats().prompt_tokens, engine.stats().generated_tokens) == (len(PROMPT), 0)
    follower = make_request("next", [*prompt, 1])
    got = finish(engine, follower)
    assert got.deltas["next"][0].cached_tokens == len(PROMPT)
    assert got.tokens("next") == finish(tiny_engine(checkpoint), follower).tokens("next")


def test_what_is_there_is_not_computed_again(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, step_budget=BLOCK_SIZE)
    finish(engine, make_request("first", PROMPT[: 2 * BLOCK_SIZE + 3], max_tokens=1))
    steps = engine.stats().steps
    assert only(run(engine, [warm("more", PROMPT)]), "more").cached_tokens == 2 * BLOCK_SIZE
    assert engine.stats().steps == steps + 1
    for prompt, found in ((PROMPT, 48), ([*PROMPT, 1, 2], 48), (PROMPT[:40], 32), (PROMPT[:15], 0), ([9], 0)):
        before = engine.stats()
        assert only(run(engine, [warm("again", prompt)]), "again").cached_tokens == found
        after = engine.stats()
        assert after.steps == steps + 1
        assert after.prompt_tokens - before.prompt_tokens == after.prefix_hit_tokens - before.prefix_hit_tokens == found
    assert_idle(engine)


def test_it_ends_without_a_row_beside_replies_that_go_on(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint), Replies()
    run(engine, [warm("first", PROMPT)])
    request = make_request("reply", [5, 6, 7], max_tokens=6)
    engine.submit(request)
    engine.step(replies)
    engine.submit(warm("again", PROMPT))
    engine.step(replies)
    assert only(replies, "again").cached_tokens == len(PROMPT)
    assert len(replies.tokens("reply")) == 2
    while engine.has_work:
        engine.step(replies)
    assert replies.tokens("reply") == finish(tiny_engine(checkpoint), request).tokens("reply")


def test_chunks_come_in_order_of_priority(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint, step_budget=20), Replies()
    engine.submit(warm("back", PROMPT, "background"))
    engine.submit(warm("front", [60 - token for token in PROMPT], "interactive"))
    ends = []
    while engine.has_work:
        engine.step(replies)
        engine.check()
        ends += [name for name in replies.deltas if name not in ends]
    assert ends == ["front", "back"]
    assert engine.stats().steps == 5  # 96 rows, 20 a step


def test_aborted_it_leaves_what_it_published(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint, step_budget=20), Replies()
    engine.submit(warm("w", PROMPT))
    engine.step(replies)
    engine.step(replies)
    engine.abort("w")
    assert_idle(engine)
    assert replies.deltas == {}
    assert hits(engine, PROMPT) == 2 * BLOCK_SIZE


def test_preempted_it_goes_on_from_what_is_left(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint, step_budget=20), Replies()
    engine.submit(warm("w", PROMPT))
    engine.step(replies)
    (seq,) = engine.scheduler.running
    engine.scheduler._preempt(engine.scheduler.schedule(), seq)
    while engine.has_work:
        engine.step(replies)
        engine.check()
    assert only(replies, "w").cached_tokens == 0
    assert engine.stats().prompt_tokens == len(PROMPT)
    assert hits(engine, [*PROMPT, 1]) == len(PROMPT)


def test_a_broken_step_ends_it_with_an_error(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint, step_budget=20), Replies()
    engine.submit(warm("w", PROMPT))
    engine.step(replies)
    engine.fail("The step broke.", replies)
    assert replies.finish("w") == "error"
    assert_idle(engine)
    assert hits(engine, PROMPT) == 0


def test_what_is_there_needs_no_place(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint, max_batch=1), Replies()
    run(engine, [warm("first", PROMPT)])
    engine.submit(make_request("long", [5, 6, 7], max_tokens=30))
    engine.step(replies)
    engine.submit(warm("again", PROMPT))
    engine.submit(warm("other", [1, *PROMPT]))
    engine.step(replies)
    assert only(replies, "again").cached_tokens == len(PROMPT)
    assert "other" not in replies.deltas
    while engine.has_work:
        engine.step(replies)
        engine.check()
    assert only(replies, "other").cached_tokens == 0


def test_nobody_reads_hidden_states_for_it(checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    class Reader(Suffix):
        needs_hidden = True

    engine, told = tiny_engine(checkpoint, [Reader()]), []
    verdicts = engine._acceptor.verdicts

    def telling(plan: Plan, outcomes: list[Outcome], out: StepOutput, reads: Sequence[bool]) -> list[Verdict]:
        told.append(dict(zip((row.seq.id for row in plan.rows), reads, strict=True)))
        return verdicts(plan, outcomes, out, reads)

    monkeypatch.setattr(engine._acceptor, "verdicts", telling)
    run(engine, [warm("w", PROMPT), make_request("r", [5, 6, 7], max_tokens=1)])
    assert told == [{"w": False, "r": True}]
