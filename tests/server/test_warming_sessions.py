"""Prompts computed ahead, as a client on a socket has them: found when they are asked for, gone with the session."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from realtime_client import address, chatting, events_until, say, user
from service import ENDLESS, LiveServer, running_server, wait_until
from websockets.sync.client import connect

from paceline.kernels.paging import BLOCK_SIZE
from paceline.server.fields import JsonObject
from paceline.server.service import Service

TEXT = "And how fast can such a group go on a flat road, when nobody is tired yet?"


def test_text_is_ready_before_it_is_committed(live: LiveServer) -> None:
    with chatting(live) as connection:
        say(connection, "input_text.append", text=TEXT[:50])
        say(connection, "input_text.append", text=TEXT[50:])
        ready = events_until(connection, "x_input_text.prefilled")[-1]
        assert BLOCK_SIZE <= ready["stable_tokens"] < ready["tokens"]
        say(connection, "input_text.commit")
        say(connection, "response.create", response={"max_output_tokens": 2})
        usage = events_until(connection, "response.done")[-1]["response"]["usage"]
        assert ready["cached_tokens"] <= usage["input_token_details"]["cached_tokens"]
        assert recomputed(usage) <= BLOCK_SIZE + ready["tokens"] - ready["stable_tokens"]


def test_a_session_that_ends_keeps_nothing(tmp_path: Path) -> None:
    with running_server(tmp_path) as live:
        stats = live.service.loop.stats
        with chatting(live) as connection:
            say(connection, "response.create", response={"max_output_tokens": 20, **ENDLESS})
            events_until(connection, "response.done")
            wait_until(lambda: stats().blocks_pinned > 0)
            say(connection, "input_text.append", text=TEXT)
        wait_until(lambda: stats().blocks_pinned == 0)


def common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens they begin with alike."""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return sum(1 for _ in same)


def recomputed(usage: JsonObject) -> int:
    found: int = usage["input_token_details"]["cached_tokens"]
    return int(usage["input_tokens"]) - found


def test_a_reply_cut_to_what_was_heard_is_not_computed_again(live: LiveServer) -> None:
    with chatting(live) as connection:
        say(connection, "response.create", response={"max_output_tokens": 60, **ENDLESS})
        item = events_until(connection, "response.done")[-1]["response"]["output"][0]
        say(connection, "conversation.item.truncate", item_id=item["id"], content_index=0, x_text_end=25)
        assert events_until(connection, "conversation.item.truncated")[-1]["x_text_end"] == 25
        say(connection, "input_text.append", text="Wait, ")
        ready = events_until(connection, "x_input_text.prefilled")[-1]
        say(connection, "input_text.append", text="stop.")
        say(connection, "input_text.commit")
        say(connection, "response.create", response={"max_output_tokens": 2})
        usage = events_until(connection, "response.done")[-1]["response"]["usage"]
        assert recomputed(usage) <= BLOCK_SIZE + usage["input_tokens"] - ready["stable_tokens"]
        assert usage["input_tokens"] - ready["stable_tokens"] < BLOCK_SIZE + len("Wait, stop.")


def test_a_restart_with_a_nearly_equal_text_computes_what_is_new(live: LiveServer, service: Service) -> None:
    """As when a transcript is corrected at its end after the reply has begun."""
    first, second = TEXT, TEXT[:-1] + "!"
    with connect(address(live), proxy=None) as connection:
        say(connection, "conversation.item.create", item={**user(first), "id": "first"})
        say(connection, "response.create", response=ENDLESS)
        events_until(connection, "response.output_text.delta")
        say(connection, "response.cancel")
        done = events_until(connection, "response.done")[-1]["response"]
        for item_id in (done["output"][0]["id"], "first"):
            say(connection, "conversation.item.delete", item_id=item_id)
        say(connection, "conversation.item.create", item=user(second))
        say(connection, "response.create", response={"max_output_tokens": 2})
        usage = events_until(connection, "response.done")[-1]["response"]["usage"]
    before, after = (service.template.encode([{"role": "user", "content": text}]) for text in (first, second))
    assert len(after) == usage["input_tokens"]
    assert recomputed(usage) <= BLOCK_SIZE + len(after) - common(before, after)
