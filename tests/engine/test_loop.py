"""The engine's thread: commands from everywhere, one owner, nothing lost, no time burnt while idle."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import pytest
from equality import Oracle, assert_equal
from fakes import RandomCheckpoint, Replies, make_request, run, tiny_engine

from paceline.engine.engine import Engine
from paceline.engine.errors import OverloadedError, RequestError
from paceline.engine.loop import EngineLoop
from paceline.engine.request import Delta, Request, Speculation
from paceline.engine.runner import StepOutput
from paceline.engine.scheduler import Plan
from paceline.spec.suffix import Suffix
from paceline.spec.tree import TokenTree

VOCAB = 61
PROMPT = list(range(20))
PATIENCE_S = 60.0  # no measurement, only an end


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, context_length=256)


class Inbox(Replies):
    """Deltas as they come, to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived = threading.Condition()

    def __call__(self, deltas: list[Delta]) -> None:
        with self._arrived:
            super().__call__(deltas)
            self._arrived.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._arrived:
            assert self._arrived.wait_for(condition, PATIENCE_S), "it did not come"

    def wait_for_finish(self, *request_ids: str) -> None:
        self.wait(lambda: all(name in self.deltas and self.finish(name) for name in request_ids))

    def wait_for_tokens(self, request_id: str, count: int) -> None:
        self.wait(lambda: len(self.tokens(request_id)) >= count)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.001)


@contextmanager
def running(engine: Engine, post: Callable[[list[Delta]], None]) -> Iterator[EngineLoop]:
    loop = EngineLoop(engine, post)
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()


def is_idle(loop: EngineLoop) -> bool:
    stats = loop.stats()
    return stats.running == stats.waiting == stats.blocks_held == 0


def in_threads(*tasks: Callable[[], None]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


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


def test_a_step_that_breaks_ends_its_sequences_and_the_thread_goes_on(
    checkpoint: RandomCheckpoint, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, engine = Inbox(), tiny_engine(checkpoint, [Suffix()])
    forward = engine._runner.forward

    def breaks(plan: Plan, trees: Sequence[TokenTree]) -> StepOutput:
        if any(row.seq.id == "bad" for row in plan.rows):
            raise RuntimeError("no pass for this one")
        return forward(plan, trees)

    monkeypatch.setattr(engine._runner, "forward", breaks)
    with running(engine, inbox) as loop, caplog.at_level(logging.ERROR):
        loop.submit(make_request("good", PROMPT, max_tokens=200))
        inbox.wait_for_tokens("good", 1)
        loop.submit(make_request("bad", PROMPT, max_tokens=200))
        inbox.wait_for_finish("good", "bad")
        for name in ("good", "bad"):
            last = inbox.deltas[name][-1]
            assert (last.finish, last.tokens) == ("error", ())
            assert last.error is not None
            assert last.error.endswith(".")
        assert "a step failed" in caplog.text
        assert "no pass for this one" in caplog.text
        request = make_request("next", PROMPT, max_tokens=20)
        loop.submit(request)
        inbox.wait_for_finish("next")
        assert is_idle(loop)
        assert not loop.stats().stuck
    engine.check()
    assert inbox.tokens("next") == run(tiny_engine(checkpoint), [request]).tokens("next")


@pytest.mark.parametrize("method", ["cost_ms", "propose", "observe", "forget"])
def test_a_drafter_that_breaks_ends_no_reply(
    checkpoint: RandomCheckpoint, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    requests = [make_request("short", PROMPT, max_tokens=8), make_request("long", PROMPT[3:], max_tokens=60)]
    inbox, drafter = Inbox(), Suffix()
    works, calls = getattr(drafter, method), iter(range(100))

    def breaks(*given: object) -> object:
        if next(calls) == (0 if method == "forget" else 3):
            raise RuntimeError("out of wit")
        return works(*given)

    monkeypatch.setattr(drafter, method, breaks)
    engine = tiny_engine(checkpoint, [drafter])
    with running(engine, inbox) as loop, caplog.at_level(logging.ERROR):
        for request in requests:
            loop.submit(request)
        inbox.wait_for_finish("short", "long")
        last = make_request("last", PROMPT, mode="suffix", max_tokens=5)
        loop.submit(last)  # it is still known by name
        inbox.wait_for_finish("last")
    plain = run(tiny_engine(checkpoint), [*requests, replace(last, speculation=Speculation())])
    assert all(inbox.tokens(name) == plain.tokens(name) for name in ("short", "long", "last"))
    assert {delta.reason for delta in inbox.deltas["last"][1:]} == {"off"}
    assert [record.getMessage() for record in caplog.records] == [
        "The drafter suffix failed and is not asked any more; replies go on without it."
    ]
    assert "out of wit" in caplog.text
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
