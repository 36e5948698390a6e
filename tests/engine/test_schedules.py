"""Random schedules of submit, step, abort, cut, pin and preempt, of all classes, with prompts that are only computed:
the books balance after each, and replies stay right."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from fakes import RandomCheckpoint, Replies, Scripted, make_request, run, tiny_engine

from paceline.engine.request import PRIORITY_ORDER
from paceline.spec.suffix import Suffix

VOCAB = 61


@pytest.mark.parametrize("seed", range(8))
def test_random_schedule_keeps_the_books_and_the_replies(seed: int) -> None:
    checkpoint = RandomCheckpoint(VOCAB, seed=seed % 3)
    pick = random.Random(seed)
    stems = [[pick.randrange(VOCAB) for _ in range(pick.randint(1, 50))] for _ in range(4)]
    requests = [
        replace(
            make_request(
                f"r{i}",
                pick.choice(stems) + [pick.randrange(VOCAB) for _ in range(pick.randint(0, 20))],
                max_tokens=pick.randint(1, 40),
                temperature=pick.choice((0.0, 0.8)),
                seed=i,
            ),
            priority=pick.choice(tuple(PRIORITY_ORDER)),
            prefill_only=pick.random() < 0.15,
            pin=pick.choice(("", "", "one", "two")),
        )
        for i in range(24)
    ]
    plain = run(tiny_engine(checkpoint, step_budget=4096), requests, together=False)
    truth = {request.prompt: plain.tokens(request.id) for request in requests}
    proposer = Suffix() if seed % 3 == 0 else Scripted(("right", "random")[seed % 2], truth, VOCAB)
    budget = pick.choice((8, 24, 200))
    engine = tiny_engine(checkpoint, [proposer], blocks=14, max_batch=6, step_budget=budget)

    replies, left, gone = Replies(), list(requests), set()
    while left or engine.has_work:
        action = pick.random()
        alive = [seq.id for seq in engine.scheduler]
        if left and (action < 0.35 or not alive):
            engine.submit(left.pop())
        elif alive and action < 0.40:
            gone.add(victim := pick.choice(alive))
            held = engine.stats().blocks_held
            engine.abort(victim)
            assert engine.stats().blocks_held <= held
        elif alive and action < 0.44:
            gone.add(victim := pick.choice(alive))
            engine.cut(victim, pick.randint(0, len(replies.tokens(victim))))
        elif action < 0.48:
            engine.pin(pick.choice(("one", "three")), pick.choice(requests).prompt)
        elif action < 0.50:
            engine.unpin(pick.choice(("one", "two", "three")))
        else:
            engine.step(replies)
        engine.check()
        assert not any(seq.id in gone for seq in engine.scheduler)

    stats = engine.stats()
    assert stats.blocks_held == 0
    assert stats.blocks_free + stats.blocks_cached == stats.blocks_total
    for owner in ("one", "two", "three"):
        engine.unpin(owner)
    engine.check()
    assert engine.stats().blocks_pinned == 0
    for request in requests:
        got, expected = replies.tokens(request.id), plain.tokens(request.id)
        assert got == expected[: len(got)]
        assert request.id in gone or got == expected
        assert request.id in gone or (replies.finish(request.id) == "prefilled") == request.prefill_only


def test_the_oldest_sequence_always_finishes() -> None:
    """A cache that holds just one full sequence: the others wait or are preempted, none starves."""
    checkpoint = RandomCheckpoint(VOCAB, context_length=96)
    engine = tiny_engine(checkpoint, [Suffix()], blocks=6, max_batch=4)
    requests = [make_request(f"r{i}", [i, *range(40)], max_tokens=50) for i in range(6)]
    replies = run(engine, requests)
    assert all(len(replies.tokens(request.id)) == 50 for request in requests)
