"""The engine's thread when a pass or a drafter breaks: who loses a reply, and that it goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import RandomCheckpoint, make_request, run, tiny_engine
from loops import Inbox, is_idle, running

from paceline.engine.request import Speculation
from paceline.engine.runner import StepOutput
from paceline.engine.scheduler import Plan
from paceline.spec.suffix import Suffix
from paceline.spec.tree import TokenTree

VOCAB = 61
PROMPT = list(range(20))


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB, context_length=256)


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
