"""Clients of the realtime socket that are slow or leave, and a server that stops."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path

import pytest
from raw_sockets import PING, all_bytes, ask_endlessly, frame, reset, upgrade
from realtime_client import address, chatting, closing_code, events_until, say, user
from service import ENDLESS, LiveServer, running_server, wait_for_tokens, wait_until, wait_until_idle
from websockets.sync.client import connect

from paceline.server.context import Settings
from paceline.server.prepared import Prepared


def test_leaving_frees_the_engine(tmp_path: Path) -> None:
    with running_server(tmp_path, context_length=4096) as live:
        raw = ask_endlessly(live.port)
        wait_for_tokens(live.service, 2)
        raw.close()
        wait_until_idle(live.service)
        assert live.service.loop.stats().generated_tokens < 3000


def test_a_reader_that_never_reads_is_dropped(tmp_path: Path) -> None:
    with running_server(tmp_path, Settings(client_patience_s=0.3), small_buffers=True, context_length=8192) as live:
        raw = ask_endlessly(live.port)
        wait_for_tokens(live.service, 20)
        wait_until_idle(live.service)
        assert live.service.loop.stats().generated_tokens < 8000
        wait_until(lambda: live.context.drain.busy == 0)
        raw.close()


def test_a_cancel_is_seen_while_a_prompt_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server(tmp_path) as live, chatting(live) as connection:
        made = threading.Event()

        async def prepare(*_: object) -> Prepared:
            await asyncio.to_thread(made.wait, 30)
            return Prepared((1, 2, 3))

        with monkeypatch.context() as patched:
            patched.setattr(live.service, "prepare", prepare)
            say(connection, "response.create")
            say(connection, "conversation.item.create", item={**user("later"), "id": "later"})
            assert events_until(connection, "conversation.item.done")[-1]["item"]["id"] == "later"
            say(connection, "response.cancel")
            events = events_until(connection, "response.done")
            made.set()
        assert [event["type"] for event in events].count("response.created") == 1
        assert events[-1]["response"]["status"] == "cancelled"
        assert live.service.loop.stats().generated_tokens == 0
        say(connection, "response.create", response={"max_output_tokens": 2})
        assert events_until(connection, "response.done")[-1]["response"]["status"] != "cancelled"


def test_a_cancel_is_seen_while_the_client_is_behind(tmp_path: Path) -> None:
    with running_server(tmp_path, Settings(max_outbox=4), small_buffers=True, context_length=8192) as live:
        raw = ask_endlessly(live.port)
        wait_for_tokens(live.service, 20)
        raw.sendall(frame("{}") * 1000 + frame('{"type": "response.cancel", "response_id": null}'))
        wait_until_idle(live.service)
        assert live.service.loop.stats().generated_tokens < 8000
        assert live.context.drain.busy == 1  # the socket is still there
        raw.close()


def test_who_sends_on_without_reading_is_closed(tmp_path: Path) -> None:
    """And learns why, however much it sends before it looks."""
    with (
        running_server(tmp_path, Settings(max_outbox=4, max_unanswered=50_000), small_buffers=True) as live,
        upgrade(live.port) as raw,
    ):
        raw.sendall(frame("{}") * 5000)
        wait_until(lambda: live.context.drain.busy == 0)
        raw.sendall(frame("{}") * 500_000 + PING)  # more than the system keeps for it
        assert b"\x03\xf0You send on without reading" in all_bytes(raw)  # 1008


def test_who_is_closed_and_stays_is_let_go(tmp_path: Path) -> None:
    settings = Settings(max_outbox=4, max_unanswered=50_000, client_patience_s=0.3)
    with running_server(tmp_path, settings, small_buffers=True) as live, upgrade(live.port) as raw:
        raw.sendall(frame("{}") * 5000)
        wait_until(lambda: not live.server.server_state.connections)
        assert live.context.drain.busy == 0


def test_who_sends_much_at_once_and_reads_is_not(live: LiveServer) -> None:
    """As many items as a conversation may hold, in one go."""
    with connect(address(live), proxy=None) as connection:
        count = 4096
        sender = threading.Thread(
            target=lambda: [say(connection, "conversation.item.create", item=user("")) for _ in range(count)]
        )
        sender.start()
        for _ in range(count):
            events_until(connection, "conversation.item.done")
        sender.join()


def test_a_slow_reader_gets_every_character_in_fewer_messages(tmp_path: Path) -> None:
    """The events that wait are merged, not dropped and not piled up."""
    with (
        running_server(tmp_path, small_buffers=True, context_length=600) as live,
        chatting(live, max_queue=1) as connection,
    ):
        say(connection, "response.create", response=ENDLESS)
        wait_for_tokens(live.service, 501)
        wait_until_idle(live.service)
        events = events_until(connection, "response.done")
        deltas = [event for event in events if event["type"] == "response.output_text.delta"]
        done = events[-1]["response"]
        assert "".join(delta["delta"] for delta in deltas) == done["output"][0]["content"][0]["text"]
        assert sum(delta["x_spec"]["emitted"] for delta in deltas) == done["usage"]["output_tokens"]
        assert [delta["x_seq"] for delta in deltas] == sorted({delta["x_seq"] for delta in deltas})
        assert len(deltas) < deltas[-1]["x_seq"]


def test_two_hundred_connects_and_drops(tmp_path: Path) -> None:
    """Sockets and requests dropped at every stage: no block is held, nothing runs, the next reply starts at once."""
    with running_server(tmp_path, context_length=1024, max_batch=8) as live:
        for i in range(100):
            raw = ask_endlessly(live.port) if i % 4 else upgrade(live.port)
            if i % 4 == 2:
                raw.recv(1000)
            reset(raw)
        body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "stream": True, **ENDLESS}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        for i in range(100):
            raw = socket.create_connection(("127.0.0.1", live.port))
            raw.sendall((head + body)[: None if i % 4 else 100])
            if i % 4 == 2:
                raw.recv(1000)
            reset(raw)
        wait_until(lambda: live.context.drain.busy == 0)
        wait_until_idle(live.service)
        assert len(live.service.streams) == 0
        with chatting(live) as connection:
            say(connection, "response.create", response={"max_output_tokens": 2, **ENDLESS})
            assert events_until(connection, "response.done")[-1]["response"]["status"] == "incomplete"


# Shutdown


def test_a_drain_lets_replies_finish_and_says_good_bye(tmp_path: Path) -> None:
    with (
        running_server(tmp_path, Settings(drain_s=60), context_length=400) as live,
        chatting(live) as busy,
        connect(address(live), proxy=None) as idle,
    ):
        say(busy, "response.create", response=ENDLESS)
        events_until(busy, "response.output_text.delta")
        live.stop()
        assert closing_code(idle) == 1001
        done = events_until(busy, "response.done")[-1]["response"]
        assert done["status_details"]["reason"] == "max_output_tokens"
        assert closing_code(busy) == 1001
        live.join()


def test_a_drain_has_an_end(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with (
        running_server(tmp_path, Settings(drain_s=0.1), context_length=8192) as live,
        chatting(live) as busy,
    ):
        say(busy, "response.create", response=ENDLESS)
        events_until(busy, "response.output_text.delta")
        live.stop()
        done = events_until(busy, "response.done")[-1]["response"]
        assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "server_stopped")
        assert closing_code(busy) == 1012
        assert busy.close_reason
        live.join()
        wait_until_idle(live.service)
    assert capfd.readouterr().err == ""


def test_a_drain_does_not_wait_for_who_never_reads(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with running_server(tmp_path) as live, upgrade(live.port):
        wait_until(lambda: live.context.drain.busy == 1)
        live.stop()
        live.join()
    assert capfd.readouterr().err == ""
