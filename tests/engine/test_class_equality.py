"""Classes decide when a reply is computed, and never what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from equality import VOCAB, Oracle, assert_equal, plain_replies, proposers, requests_for
from fakes import RandomCheckpoint, Replies, tiny_engine

from paceline.engine.engine import Engine
from paceline.engine.request import PRIORITY_ORDER, Request
from paceline.engine.scheduler import Plan
from paceline.spec.cost import Work
from paceline.spec.tree import TokenTree

# A row costs a twentieth of a plain step: a few may join, many may not.
LINE = {1: 10.5, 65: 42.5}


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB)


def mixed(sampling: dict[str, object]) -> list[Request]:
    """Two interactive requests, and of the others more than may run beside them."""
    order = [*PRIORITY_ORDER] * 2 + ["normal", "background", "background", "background"]
    return [
        replace(request, priority=priority)
        for request, priority in zip(requests_for(sampling, count=len(order)), order, strict=True)
    ]


def watched(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, bool]]:
    """For each step with interactive streams: how many times longer it is than their own rows would take, and whether
    others were left out of it; steps that read an interactive prompt aside."""
    found: list[tuple[float, bool]] = []
    forward, cost = engine._runner.forward, engine._planner._cost

    def watching(plan: Plan, trees: Sequence[TokenTree]) -> Any:
        own, whole, prompts = Work(0), Work(0), 0
        for row, tree in zip(plan.rows, trees, strict=True):
            whole = whole.beside(row.start, len(tree))
            if row.seq.request.rank == 0:
                own = own.beside(row.start, len(tree))
                prompts += not row.seq.is_decoding
        if own.rows and not prompts:
            left_out = any(seq.skipped for seq in engine.scheduler.running)
            found.append((cost.ms(whole) / cost.ms(own), left_out))
        return forward(plan, trees)

    monkeypatch.setattr(engine._runner, "forward", watching)
    return found


@pytest.mark.parametrize("name", ["none", "suffix", "random"])
@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.8, "presence_penalty": 0.5}], ids=["greedy", "seeded"])
def test_three_classes_beside_each_other_change_no_reply_and_interactive_steps_stay_short(
    checkpoint: RandomCheckpoint,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    name: str,
    sampling: dict[str, object],
) -> None:
    requests = mixed(sampling)
    plain = plain_replies(checkpoint, requests)
    guessing = [] if name == "none" else proposers(name, requests, plain)
    engine = tiny_engine(checkpoint, guessing, cost=LINE, max_nodes=8)
    steps, replies = watched(engine, monkeypatch), Replies()
    for request in requests:
        engine.submit(request)
    while engine.has_work:
        engine.step(replies)
        engine.check()
    assert_equal(Oracle(checkpoint), requests, plain, replies, record_property)
    assert max(times for times, _ in steps) <= 1.5 + 1e-9
    assert any(left_out for _, left_out in steps)
