"""What an engine counts of its steps, against what it told of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import RandomCheckpoint, Scripted, finish, make_request, run, tiny_engine

VOCAB = 61
PROMPT = list(range(20))


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(VOCAB)


def test_counters_agree_with_the_deltas(checkpoint: RandomCheckpoint) -> None:
    requests = [make_request(f"r{i}", [i, *PROMPT], max_tokens=20 + i) for i in range(4)]
    plain = run(tiny_engine(checkpoint), requests, together=False)
    drafter = Scripted("random", {request.prompt: plain.tokens(request.id) for request in requests}, VOCAB)
    engine = tiny_engine(checkpoint, [drafter])
    replies = run(engine, requests)
    again = run(engine, [replace(request, id=f"{request.id}-again") for request in requests])
    deltas = [delta for r in (replies, again) for mine in r.deltas.values() for delta in mine]
    stats = engine.stats()
    assert stats.generated_tokens == sum(len(delta.tokens) for delta in deltas) == 2 * sum(range(20, 24))
    assert stats.prompt_tokens == 8 * len(requests[0].prompt)
    assert stats.prefix_hit_tokens == 4 * 16
    drafted, accepted, steps = stats.guesses
    assert sum(drafted) == sum(delta.drafted for delta in deltas)
    assert sum(accepted) == sum(delta.accepted for delta in deltas) > 0
    assert all(a <= s <= d for a, s, d in zip(accepted, steps, drafted, strict=True))
    assert list(accepted) == sorted(accepted, reverse=True)
    assert list(steps) == sorted(steps, reverse=True)
    assert stats.guesses_by_drafter == (("random", stats.guesses),)
    assert sum(stats.step_sequences.counts) == sum(stats.step_rows.counts) == stats.steps
    assert stats.step_sequences.total == len(deltas)  # no prompt was cut in two
    rows = stats.prompt_tokens - stats.prefix_hit_tokens + len(deltas) - len(requests) * 2 + sum(drafted)
    assert stats.step_rows.total == rows
    assert 0 < stats.forward_ms <= stats.step_ms
    assert stats.steps >= 2 * 2
    assert not stats.stuck
    assert stats.blocks_free + stats.blocks_cached + stats.blocks_held == stats.blocks_total


def test_a_chain_that_is_always_right_is_counted_at_its_depths(checkpoint: RandomCheckpoint) -> None:
    request = make_request("r", PROMPT, max_tokens=22)
    truth = finish(tiny_engine(checkpoint), request).tokens("r")
    engine = tiny_engine(checkpoint, [Scripted("right", {request.prompt: truth}, VOCAB)], max_nodes=5)
    replies = finish(engine, request)
    # The first token alone, then four guesses and a bonus token per step, then one left.
    assert [len(delta.tokens) for delta in replies.deltas["r"]] == [1, 5, 5, 5, 5, 1]
    counts = engine.stats().guesses
    assert counts.drafted == counts.accepted == counts.steps == (4, 4, 4, 4, *[0] * 12)


def test_each_drafter_is_counted_from_the_start_and_all_that_agree_are(checkpoint: RandomCheckpoint) -> None:
    request = make_request("r", PROMPT, max_tokens=22)
    truth = {request.prompt: finish(tiny_engine(checkpoint), request).tokens("r")}
    engine = tiny_engine(checkpoint, [Scripted(name, truth, VOCAB) for name in ("right", "wrong", "random")])
    assert [(name, sum(counts.drafted)) for name, counts in engine.stats().guesses_by_drafter] == [
        ("right", 0),
        ("wrong", 0),
        ("random", 0),
    ]
    finish(engine, request)
    counted = dict(engine.stats().guesses_by_drafter)
    assert sum(counted["right"].drafted) == sum(counted["right"].accepted) > 0
    assert sum(counted["wrong"].accepted) == 0
    votes = sum(sum(counts.drafted) for counts in counted.values())
    assert votes > sum(engine.stats().guesses.drafted)


def test_the_cost_model_learns_from_every_step_but_those_of_a_lone_prompt(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, cost={1: 1e6, 100_000: 1e6})
    finish(engine, make_request("prompt", PROMPT, max_tokens=1))
    assert engine._planner._cost.pace == 1.0
    finish(engine, make_request("r", PROMPT, max_tokens=10))
    assert engine._planner._cost.pace < 1.0
