"""The engine's thread: commands from everywhere, one owner, nothing lost, no time burnt while idle."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from equality import Oracle, assert_equal
from fakes import RandomCheckpoint, make_request, run, tiny_engine
from loops import PATIENCE_S, Inbox, in_threads, is_idle, running, wait_until

from paceline.engine.errors import OverloadedError, RequestError
from paceline.engine.loop import EngineLoop
from paceline.engine.request import Delta, Request
from paceline.spec.suffix import Suffix

VOCAB = 61
PROMPT = list(range(20))


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, context_length=256)


def test_eight_streams_at_once_each_equal_their_solo_run(
    checkpoint: RandomCheckpoint, record_property: Callable[[str, object], None]
) -> None:
    requests = [
        make_request(f"r{i}", (PROMPT[i:] * 3)[: 10 + 7 * i], max_tokens=25, temperature=0.8 * (i % 2), seed=i)
        for i in range(8)
    ]
    solo = run(tiny_engine(checkpoint), requests, together=False)
    inbox, engine = Inbox(), tiny_engine(checkpoint, [Suffix()])
    with running(engine, inbox) as loop:
        in_threads(*(lambda request=request: loop.submit(request) for request in requests))  # type: ignore[misc]
        inbox.wait_for_finish(*(request.id for request in requests))
    assert_equal(Oracle(checkpoint), requests, solo, inbox, record_property)
    engine.check()


def test_deltas_are_posted_on_the_engines_thread(checkpoint: RandomCheckpoint) -> None:
    names: set[str] = set()
    inbox = Inbox()

    def post(deltas: list[Delta]) -> None:
        names.add(threading.current_thread().name)
        inbox(deltas)

    with running(tiny_engine(checkpoint), post) as loop:
        loop.submit(make_request("r", PROMPT, max_tokens=3))
        inbox.wait_for_finish("r")
    assert names == {"paceline-engine"}


def test_pins_are_set_and_lifted_in_the_order_of_commands(checkpoint: RandomCheckpoint) -> None:
    inbox = Inbox()
    with running(tiny_engine(checkpoint), inbox) as loop:
        loop.submit(make_request("r", [*PROMPT, *PROMPT], max_tokens=3))
        inbox.wait_for_finish("r")
        tokens = [*PROMPT, *PROMPT]
        loop.pin("me", tokens)
        tokens.clear()
        wait_until(lambda: loop.stats().blocks_pinned == 2)
        loop.unpin("me")
        wait_until(lambda: loop.stats().blocks_pinned == 0)


def test_a_bad_request_is_refused_where_it_is_submitted(checkpoint: RandomCheckpoint) -> None:
    inbox = Inbox()
    with running(tiny_engine(checkpoint), inbox) as loop:
        with pytest.raises(RequestError):
            loop.submit(make_request("long", [1] * 256))
        loop.submit(make_request("r", PROMPT, max_tokens=3))
        inbox.wait_for_finish("r")
    assert "long" not in inbox.deltas


def test_requests_that_are_still_in_the_inbox_count_for_the_queue(checkpoint: RandomCheckpoint) -> None:
    inbox = Inbox()
    loop = EngineLoop(
        tiny_engine(checkpoint, queue_limit=2, max_batch=1), inbox
    )  # not started: nothing leaves the inbox
    for name in "abc":
        loop.submit(make_request(name, PROMPT, max_tokens=3))
    with pytest.raises(OverloadedError, match="2 requests are waiting"):
        loop.submit(make_request("d", PROMPT))
    loop.start()
    inbox.wait_for_finish("a", "b", "c")
    loop.submit(make_request("e", PROMPT, max_tokens=3))
    inbox.wait_for_finish("e")
    loop.stop()
    assert "d" not in inbox.deltas


def test_a_race_for_the_last_place_in_the_queue_harms_nobody(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads that both saw a free place: whatever becomes of the second, the engine's thread must live on."""
    engine, inbox = tiny_engine(checkpoint, queue_limit=1), Inbox()
    loop, both_saw_it = EngineLoop(engine, inbox), threading.Barrier(2)
    validate, refused = engine.validate, []

    def submit(name: str) -> None:
        try:
            loop.submit(make_request(name, PROMPT, max_tokens=3))
        except OverloadedError:
            refused.append(name)

    def slow_validate(request: Request, queued: int = 0) -> None:
        validate(request, queued)
        if threading.current_thread() is not loop._thread:
            with suppress(threading.BrokenBarrierError):  # whoever submits may be alone in here, which is right too
                both_saw_it.wait(0.5)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "validate", slow_validate)
        in_threads(lambda: submit("a"), lambda: submit("b"))
        patch.setattr(threading, "excepthook", lambda args: None)
        loop.start()
        taken = {"a", "b"} - set(refused)
        wait_until(lambda: loop.stats().stuck or taken <= inbox.deltas.keys())
        assert not loop.stats().stuck, "the thread is gone"
        loop.submit(make_request("next", PROMPT, max_tokens=3))
        inbox.wait_for_finish("next")
        loop.stop()


@pytest.mark.parametrize("stage", ["waiting", "prefilling", "decoding"])
def test_abort_from_another_thread(checkpoint: RandomCheckpoint, stage: str) -> None:
    inbox, engine = Inbox(), tiny_engine(checkpoint, [Suffix()], max_batch=1, step_budget=8)
    with running(engine, inbox) as loop:
        loop.submit(make_request("mate", PROMPT, max_tokens=30))
        if stage == "waiting":
            loop.submit(make_request("r", range(40, 60), max_tokens=200))
        else:
            inbox.wait_for_finish("mate")
            loop.submit(make_request("r", [1] * 200, max_tokens=50))
            if stage == "decoding":
                inbox.wait_for_tokens("r", 2)
        in_threads(lambda: loop.abort("r"))
        inbox.wait_for_finish("mate")
        wait_until(lambda: is_idle(loop))
        count = len(inbox.deltas.get("r", []))
        loop.submit(make_request("next", PROMPT, max_tokens=5))
        inbox.wait_for_finish("next")
        assert len(inbox.deltas.get("r", [])) == count
        assert count == 0 or inbox.finish("r") is None
    engine.check()


def test_cut_from_another_thread_ends_the_reply_and_its_cache(checkpoint: RandomCheckpoint) -> None:
    inbox, engine = Inbox(), tiny_engine(checkpoint)
    with running(engine, inbox) as loop:
        loop.submit(make_request("r", PROMPT, max_tokens=230))
        inbox.wait_for_tokens("r", 40)
        in_threads(lambda: loop.cut("r", 14))
        wait_until(lambda: is_idle(loop))
        if inbox.finish("r") is None:  # it was not over by itself before the cut came
            loop.submit(make_request("again", [*PROMPT, *inbox.tokens("r")[:40]], max_tokens=1))
            inbox.wait_for_finish("again")
            assert inbox.deltas["again"][0].cached_tokens == 32


def test_unknown_ids_are_ignored(checkpoint: RandomCheckpoint) -> None:
    inbox = Inbox()
    with running(tiny_engine(checkpoint), inbox) as loop:
        loop.abort("nobody")
        loop.cut("nobody", 3)
        loop.submit(make_request("r", PROMPT, max_tokens=3))
        inbox.wait_for_finish("r")
        loop.abort("r")  # over already
        loop.submit(make_request("next", PROMPT, max_tokens=3))
        inbox.wait_for_finish("next")


def test_many_clients_come_and_go(checkpoint: RandomCheckpoint) -> None:
    """Eight threads, each submitting and dropping; at the end nothing is held and the rest is right."""
    inbox, engine = Inbox(), tiny_engine(checkpoint, [Suffix()], blocks=40, max_batch=4)
    truth = run(tiny_engine(checkpoint), [make_request("r", PROMPT, max_tokens=12)]).tokens("r")

    with running(engine, inbox) as loop:

        def client(number: int) -> None:
            for turn in range(6):
                name = f"c{number}-{turn}"
                loop.submit(make_request(name, PROMPT, max_tokens=12))
                if (number + turn) % 2:
                    loop.abort(name)
                else:
                    inbox.wait_for_finish(name)

        in_threads(*(lambda number=number: client(number) for number in range(8)))  # type: ignore[misc]
        wait_until(lambda: is_idle(loop))
        finished = [name for name in inbox.deltas if inbox.finish(name)]
        assert len(finished) >= 24
        assert all(inbox.tokens(name) == truth for name in finished)
    engine.check()


def test_stop_ends_the_thread_in_the_middle_of_a_reply(checkpoint: RandomCheckpoint) -> None:
    inbox = Inbox()
    with running(tiny_engine(checkpoint), inbox) as loop:
        loop.submit(make_request("r", PROMPT, max_tokens=230))
        inbox.wait_for_tokens("r", 2)
        loop.stop()
        assert not loop._thread.is_alive()
        count = len(inbox.tokens("r"))
        loop.stop()  # once more does no harm
        assert len(inbox.tokens("r")) == count


def test_a_dead_thread_is_stuck(checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(deltas: list[Delta]) -> None:
        raise SystemExit

    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    loop = EngineLoop(tiny_engine(checkpoint), leave)
    loop.start()
    assert not loop.stats().stuck
    loop.submit(make_request("r", PROMPT))
    loop._thread.join(PATIENCE_S)
    assert loop.stats().stuck


def test_an_idle_loop_sleeps(checkpoint: RandomCheckpoint) -> None:
    inbox = Inbox()
    with running(tiny_engine(checkpoint), inbox) as loop:
        for turn in range(2):  # before the first request and after it
            cpu, wall = time.process_time(), time.monotonic()
            time.sleep(0.25)
            assert time.process_time() - cpu < 0.3 * (time.monotonic() - wall)
            loop.submit(make_request(f"r{turn}", PROMPT, max_tokens=3))
            inbox.wait_for_finish(f"r{turn}")
            wait_until(lambda: is_idle(loop))
        assert not loop.stats().stuck


def test_stats_are_a_snapshot_that_adds_up(checkpoint: RandomCheckpoint) -> None:
    inbox = Inbox()
    with running(tiny_engine(checkpoint), inbox) as loop:
        before = loop.stats()
        loop.submit(make_request("r", PROMPT, max_tokens=7))
        inbox.wait_for_finish("r")
        wait_until(lambda: loop.stats().steps == 7)
        after = loop.stats()
    assert (before.steps, before.generated_tokens, before.stuck) == (0, 0, False)
    assert (after.generated_tokens, after.prompt_tokens, after.running) == (7, 20, 0)
    assert after.last_step_age_s >= 0
