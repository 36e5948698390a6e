"""Blocks of a conversation are kept between its turns, however a turn ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fakes import RandomCheckpoint, Replies, assert_idle, finish, make_request, tiny_engine

from paceline.engine.engine import Engine
from paceline.engine.request import Request
from paceline.kernels.paging import BLOCK_SIZE

PROMPT = [*range(40)]


@pytest.fixture(scope="module")
def checkpoint() -> RandomCheckpoint:
    return RandomCheckpoint(61, context_length=128)


def turn(name: str, prompt: Sequence[int], pin: str = "me", max_tokens: int = 10) -> Request:
    return replace(make_request(name, prompt, max_tokens=max_tokens), pin=pin)


def hits(engine: Engine, tokens: Sequence[int]) -> int:
    return finish(engine, make_request("probe", tokens, max_tokens=1)).deltas["probe"][0].cached_tokens


def fill(engine: Engine) -> None:
    """Strangers that use every block of the cache they can without touching a pin."""
    for first in range(50, 54):
        finish(engine, make_request(f"stranger {first}", [first] * 60, max_tokens=1))


def test_a_finished_reply_is_kept(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, blocks=8)
    tokens = [*PROMPT, *finish(engine, turn("r", PROMPT)).tokens("r")]
    assert engine.stats().blocks_pinned == 3  # 49 of 50 tokens are computed
    fill(engine)
    assert engine.stats().blocks_pinned == 3
    assert hits(engine, tokens) == 3 * BLOCK_SIZE
    engine.unpin("me")
    assert engine.stats().blocks_pinned == 0
    fill(engine)
    assert hits(engine, tokens) == 0
    assert_idle(engine)


@pytest.mark.parametrize(("end", "kept"), [("abort", 5), ("cut", 3)])
def test_a_reply_that_did_not_finish_is_kept_as_far_as_it_came(
    checkpoint: RandomCheckpoint, end: str, kept: int
) -> None:
    engine, replies = tiny_engine(checkpoint, blocks=8), Replies()
    engine.submit(turn("r", PROMPT, max_tokens=60))
    while len(replies.tokens("r")) < 42:
        engine.step(replies)
    assert engine.stats().blocks_pinned == 0  # held, not idle
    if end == "abort":
        engine.abort("r")
    else:
        engine.cut("r", 10)
    assert_idle(engine)
    assert engine.stats().blocks_pinned == kept


def test_a_turn_that_never_ran_leaves_the_one_before_pinned(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, blocks=8, max_batch=1)
    tokens = [*PROMPT, *finish(engine, turn("one", PROMPT)).tokens("one")]
    engine.submit(turn("two", [*tokens, 7, 8, 9]))
    engine.abort("two")
    assert engine.stats().blocks_pinned == 3


def test_a_prompt_computed_ahead_is_kept_at_once(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, blocks=8)
    for _ in range(2):  # computed, and found
        finish(engine, replace(turn("w", PROMPT), prefill_only=True))
        assert engine.stats().blocks_pinned == 2
        engine.unpin("me")


def test_a_broken_step_leaves_nothing_pinned(checkpoint: RandomCheckpoint) -> None:
    engine, replies = tiny_engine(checkpoint, blocks=8), Replies()
    finish(engine, turn("other", [60, *PROMPT], pin="other"))
    engine.submit(turn("r", PROMPT))
    engine.step(replies)
    engine.fail("The step broke.", replies)
    assert_idle(engine)
    assert (engine.stats().blocks_pinned, engine.stats().blocks_cached) == (0, 0)


def test_under_pressure_the_conversation_set_least_recently_goes(checkpoint: RandomCheckpoint) -> None:
    engine = tiny_engine(checkpoint, blocks=8)
    for first, owner in ((1, "old"), (2, "young")):
        finish(engine, turn(owner, [first, *PROMPT], pin=owner, max_tokens=2))
    assert engine.stats().blocks_pinned == 4
    engine.pin("old", [1, *PROMPT])  # used again
    finish(engine, make_request("stranger", [60] * 90, max_tokens=1))  # six blocks
    assert engine.stats().blocks_pinned == 2
    assert hits(engine, [1, *PROMPT]) == 2 * BLOCK_SIZE
    assert hits(engine, [2, *PROMPT]) == 0
    assert_idle(engine)
