"""A rehearsal leaves nothing behind but what it was held for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from fakes import FLAT, RandomCheckpoint, assert_idle, make_request, run, tiny_engine

from paceline.engine import build
from paceline.engine.rehearsal import rehearse
from paceline.kernels import backend
from paceline.spec.proposer import Ask, Proposal, Verdict


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(61, context_length=128)


class Fan:
    """One guess below each pending token."""

    name = "fan"
    needs_hidden = True

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.times = 0

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return 1.0

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        self.asked.append(len(asks))
        return [Proposal(self.name, (1,), (-1,), (0.4,)) for ask in asks]

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        assert any(verdict.hidden is not None for verdict in verdicts)

    def forget(self, seq_id: str) -> None: ...

    def restart(self) -> None:
        self.times += 1


def test_drafters_are_asked_by_so_many_streams_and_forget_how_long_it_took(checkpoint: RandomCheckpoint) -> None:
    fan = Fan()
    engine = tiny_engine(checkpoint, [fan], cost={1: 1000.0, 1024: 1000.0})
    rehearse(engine, [2, 5], lambda: None)
    assert {1, 2, 5} <= {*fan.asked}
    assert_idle(engine)
    small = tiny_engine(checkpoint, [fan], context_length=20)
    rehearse(small, [2], pytest.fail)
    assert small.stats().steps == 0


def test_replies_of_an_engine_that_has_rehearsed_are_the_same(
    checkpoint: RandomCheckpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [make_request(f"r{i}", range(i, i + 9), temperature=0.8, max_tokens=20) for i in range(3)]
    expected = run(tiny_engine(checkpoint, None), requests)
    choose: Callable[..., backend.Ops] = build.choose_ops
    rehearsed: list[Any] = []

    def prepared(*args: Any) -> backend.Ops:
        return replace(choose(*args), sizes=(1, 2, 4))

    def watched(engine: build.Engine, streams: Sequence[int], restart: Callable[[], None]) -> None:
        rehearse(engine, streams, restart)
        rehearsed.append((engine, streams))

    monkeypatch.setattr(build, "choose_ops", prepared)
    monkeypatch.setattr(build, "rehearse", watched)
    engine = tiny_engine(checkpoint, None, max_batch=3, cost=FLAT)
    ((spare, streams),) = rehearsed
    assert streams == [1, 2]
    assert spare is not engine
    assert spare.stats().steps > 0
    assert engine.stats().steps == engine.stats().blocks_cached == 0
    replies = run(engine, requests)
    assert [replies.tokens(each.id) for each in requests] == [expected.tokens(each.id) for each in requests]
