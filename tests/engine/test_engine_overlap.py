"""With a device that works by itself, readers are told of a step while the next one is computed; nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import RandomCheckpoint, Replies, make_request, run, tiny_engine

from paceline.engine.engine import Engine
from paceline.engine.request import Delta


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint()


def overlapping(checkpoint: RandomCheckpoint, **options: Any) -> Engine:
    engine = tiny_engine(checkpoint, **options)
    engine._overlap = True
    return engine


def test_replies_are_those_of_an_engine_that_waits(checkpoint: RandomCheckpoint) -> None:
    requests = [make_request(f"r{i}", [1 + i, 2, 3] * 5, max_tokens=7 + i) for i in range(4)]
    plain = run(tiny_engine(checkpoint), requests)
    told = run(overlapping(checkpoint), requests)
    for request in requests:
        assert told.tokens(request.id) == plain.tokens(request.id)
        assert told.finish(request.id) == "length"


def test_a_step_is_told_of_before_the_next_one_is_read_and_the_last_one_at_once(checkpoint: RandomCheckpoint) -> None:
    engine = overlapping(checkpoint, speculator="none")
    events: list[str] = []
    runner = engine._runner
    settle = runner.settle

    class Watched:
        def __init__(self, pending: Any) -> None:
            self._pending = pending

        def result(self) -> Any:
            events.append("read")
            return self._pending.result()

    runner.settle = lambda *given: (events.append("launched"), Watched(settle(*given)))[1]  # type: ignore[method-assign,func-returns-value]
    engine.submit(make_request("r", [1, 2, 3], max_tokens=3))
    while engine.has_work:
        engine.step(lambda deltas: events.append(f"told {len(deltas[0].tokens)}"))
    assert events == [*("launched", "read"), *("launched", "told 1", "read") * 2, "told 1"]


def test_an_aborted_sequence_leaves_nothing_untold_of_the_others(checkpoint: RandomCheckpoint) -> None:
    engine, replies = overlapping(checkpoint, speculator="none"), Replies()
    for name in ("kept", "dropped"):
        engine.submit(make_request(name, [1, 2, 3], max_tokens=3))
    engine.step(replies)
    engine.abort("kept")
    engine.abort("dropped")
    assert not engine.has_work
    engine.step(replies)
    assert {name: len(deltas) for name, deltas in replies.deltas.items()} == {"kept": 1, "dropped": 1}


def test_a_broken_step_is_told_after_what_the_one_before_it_brought(checkpoint: RandomCheckpoint) -> None:
    engine = overlapping(checkpoint, speculator="none")
    engine.submit(make_request("r", [1, 2, 3], max_tokens=9))
    told: list[Delta] = []
    engine.step(told.extend)
    assert told == []

    def broken(*_: object) -> None:
        raise RuntimeError

    engine._runner.forward = broken  # type: ignore[method-assign,assignment]
    with pytest.raises(RuntimeError):
        engine.step(told.extend)
    engine.fail("It broke.", told.extend)
    assert [(len(delta.tokens), delta.finish) for delta in told] == [(1, None), (0, "error")]
    assert engine._news == []
