"""The realtime socket as clients see it: the stock SDK, plain WebSockets, slow readers, and those that leave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
import websockets.exceptions
from service import (
    MODEL_ID,
    SOCKET,
    LiveServer,
    client_of,
    is_idle,
    live_server,
    running_service,
    wait_until,
)
from starlette.testclient import TestClient, WebSocketDenialResponse
from websockets.sync.client import ClientConnection, connect

from paceline.server.context import Settings
from paceline.server.service import Service


def address(live: LiveServer) -> str:
    return f"ws://127.0.0.1:{live.port}/v1/realtime"


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def say(connection: ClientConnection, kind: str, **fields: Any) -> None:
    connection.send(json.dumps({"type": kind, **fields}))


def events_until(connection: ClientConnection, kind: str) -> list[dict[str, Any]]:
    events = []
    while not events or events[-1]["type"] != kind:
        events.append(json.loads(connection.recv(timeout=30)))
    return events


def closing_code(connection: ClientConnection) -> int:
    """Reads whatever still comes, to the end."""
    with contextlib.suppress(websockets.exceptions.ConnectionClosed):  # raised for codes other than 1000 and 1001
        for _ in connection:
            pass
    assert connection.close_code is not None
    return connection.close_code


@contextlib.contextmanager
def chatting(live: LiveServer, **options: Any) -> Iterator[ClientConnection]:
    """A socket whose conversation has one user message."""
    with connect(address(live), proxy=None, **options) as connection:
        say(connection, "conversation.item.create", item=user("hi there"))
        events_until(connection, "conversation.item.done")
        yield connection


ENDLESS = {"logit_bias": {"2": -100}}  # the end token never comes: the context is the only end


# The stock SDK

# It opens its socket in a way that the websockets library wants replaced.
stock_sdk = pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")


@stock_sdk
def test_sdk_session(live: LiveServer) -> None:
    with (
        openai.OpenAI(
            base_url=f"{live.url}/v1", websocket_base_url=f"ws://127.0.0.1:{live.port}/v1", api_key="unused"
        ) as sdk,
        sdk.realtime.connect(model=MODEL_ID) as connection,
    ):
        assert connection.recv().type == "session.created"
        connection.session.update(
            session={"type": "realtime", "output_modalities": ["text"], "instructions": "Be kind."}
        )
        assert connection.recv().type == "session.updated"
        connection.conversation.item.create(item=user("hello"))  # type: ignore[arg-type]
        assert [connection.recv().type for _ in range(2)] == ["conversation.item.added", "conversation.item.done"]
        connection.response.create(response={"max_output_tokens": 8, **ENDLESS})  # type: ignore[arg-type]
        seen = []
        text = ""
        for event in connection:
            seen.append(event.type)
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.output_text.done":
                assert event.text == text
            if event.type == "response.done":
                break
        assert event.response.usage is not None
        assert event.response.usage.output_tokens == 8
        order = [kind for i, kind in enumerate(seen) if i == 0 or seen[i - 1] != kind]
        assert order == [
            "response.created",
            "response.output_item.added",
            "conversation.item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "conversation.item.done",
            "response.done",
        ]
        connection.response.cancel()
        error = connection.recv()
        assert error.type == "error"
        assert error.error.code == "response_cancel_not_active"


@stock_sdk
def test_sdk_cancel(live: LiveServer, service: Service) -> None:
    with (
        openai.OpenAI(
            base_url=f"{live.url}/v1", websocket_base_url=f"ws://127.0.0.1:{live.port}/v1", api_key="unused"
        ) as sdk,
        sdk.realtime.connect(model="default") as connection,
    ):
        connection.conversation.item.create(item=user("hello"))  # type: ignore[arg-type]
        connection.response.create(response=ENDLESS)  # type: ignore[arg-type]
        done = []
        for event in connection:
            if event.type == "response.output_text.delta" and not done:
                connection.response.cancel()
                done.append(None)
            if event.type == "response.done":
                assert event.response.status == "cancelled"
                break
        wait_until(lambda: is_idle(service))
        connection.response.create(response={"max_output_tokens": 3})
        assert connection.recv().type == "response.created"


# A conversation


def test_the_second_turn_finds_the_first_in_the_cache(live: LiveServer) -> None:
    with chatting(live) as connection:
        say(connection, "response.create", response={"max_output_tokens": 30, "seed": 4})
        first = events_until(connection, "response.done")[-1]["response"]
        say(connection, "conversation.item.create", item=user("and?"))
        say(connection, "response.create", response={"max_output_tokens": 3})
        second = events_until(connection, "response.done")[-1]["response"]
        assert first["seed"] == 4
        assert second["usage"]["input_tokens"] > first["usage"]["total_tokens"]
        assert second["usage"]["input_token_details"]["cached_tokens"] >= 16


def test_speculation_changes_no_text_and_counts_add_up(live: LiveServer) -> None:
    texts = []
    with connect(address(live), proxy=None) as connection:
        for mode in ("none", "ngram"):
            response = {
                "conversation": "none",
                "input": [user("the cat sat on the mat; " * 6)],
                "max_output_tokens": 40,
                "temperature": 0,
                "speculation": {"mode": mode},
            }
            say(connection, "response.create", response=response)
            events = events_until(connection, "response.done")
            deltas = [event for event in events if event["type"] == "response.output_text.delta"]
            texts.append("".join(delta["delta"] for delta in deltas))
            done = events[-1]["response"]
            assert sum(delta["x_spec"]["emitted"] for delta in deltas) == done["usage"]["output_tokens"]
            assert done["output"][0]["content"][0]["text"] == texts[-1]
            drafted = sum(delta["x_spec"]["drafted"] for delta in deltas)
            assert drafted == done["metrics"]["speculative_decoding"]["num_draft_tokens"]
            assert (drafted > 0) == (mode == "ngram")
    assert texts[0] == texts[1]


def test_two_responses_side_by_side(live: LiveServer) -> None:
    with chatting(live) as connection:
        say(connection, "response.create", response={"max_output_tokens": 60, **ENDLESS})
        say(connection, "response.create", event_id="second")
        aside = {"conversation": "none", "input": [user("aside")], "max_output_tokens": 5}
        say(connection, "response.create", response=aside)
        events: list[dict[str, Any]] = []
        while sum(event["type"] == "response.done" for event in events) < 2:
            events += events_until(connection, "response.done")
        errors = [event["error"] for event in events if event["type"] == "error"]
        assert [(e["code"], e["event_id"]) for e in errors] == [("conversation_already_has_active_response", "second")]
        assert len({e["response"]["id"] for e in events if e["type"] == "response.done"}) == 2


def test_a_conversation_over_the_context_is_an_error_event(live: LiveServer) -> None:
    with connect(address(live), proxy=None) as connection:
        say(connection, "response.create", event_id="long", response={"input": [user("z" * 5000)]})
        error = events_until(connection, "error")[-1]["error"]
        assert (error["code"], error["event_id"]) == ("context_length_exceeded", "long")
        say(connection, "response.create", response={"input": [user("short")], "max_output_tokens": 2})
        events_until(connection, "response.done")


def test_a_full_queue_is_an_error_event(tmp_path: Path) -> None:
    with running_service(tmp_path, max_batch=1, queue_limit=1) as service, client_of(service) as client:
        with client.websocket_connect(SOCKET) as connection:
            beside = {"conversation": "none", "input": [user("hi")], **ENDLESS}
            for _ in range(6):
                connection.send_json({"type": "response.create", "response": beside})
            seen = []
            while "overloaded" not in seen:
                event = connection.receive_json()
                seen.append(event.get("error", {}).get("code"))
        wait_until(lambda: is_idle(service))


# What a client can get wrong


def test_mistakes_leave_the_session_open(client: TestClient) -> None:
    with client.websocket_connect(f"{SOCKET}?model={MODEL_ID}") as connection:
        assert connection.receive_json()["session"]["model"] == MODEL_ID
        for text in ("{", "[]", '{"type": "nonsense"}', '{"type": "input_audio_buffer.append"}', '{"x": NaN}'):
            connection.send_text(text)
            assert connection.receive_json()["type"] == "error"
        connection.send_json({"type": "response.create", "response": {"input": [user("hi")], "max_output_tokens": 2}})
        assert connection.receive_json()["type"] == "response.created"


@pytest.mark.parametrize(
    ("frame", "code"), [(b"binary", 1003), ("x" * (2 * 2**20), 1009), ('{"type": "' + "x" * 2**20 + '"}', 1009)]
)
def test_frames_that_close_the_socket(live: LiveServer, service: Service, frame: str | bytes, code: int) -> None:
    with chatting(live) as connection:
        say(connection, "response.create", response=ENDLESS)
        events_until(connection, "response.output_text.delta")
        with contextlib.suppress(websockets.exceptions.ConnectionClosed):
            connection.send(frame)
        assert closing_code(connection) == code
    wait_until(lambda: is_idle(service))


def test_text_that_is_no_text_closes_the_socket(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    with live_server(service) as live, chatting(live) as connection:
        connection.send(b"\xff\xfe", text=True)
        assert closing_code(connection) == 1007
        assert connection.close_reason == "Text frames must be UTF-8."
    assert capfd.readouterr().err == ""


def test_a_refused_socket_is_no_error_in_the_log(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    with live_server(service, Settings(api_keys=("key",))) as live:
        bearer = {"Authorization": "Bearer key"}
        for url, headers, status in (
            (address(live), {}, 401),
            (address(live), {**bearer, "Origin": "http://evil.example"}, 403),
            (f"{address(live)}/nowhere", bearer, 404),
        ):
            with pytest.raises(websockets.exceptions.InvalidStatus) as caught:
                connect(url, proxy=None, additional_headers=headers)
            assert caught.value.response.status_code == status
            assert b'"message"' in (caught.value.response.body or b"")
    assert capfd.readouterr().err == ""


def test_messages_after_close_hurt_nobody(live: LiveServer, service: Service) -> None:
    """A client that says good-bye and goes on talking in the same breath."""
    raw = upgrade(live.port)
    close = b"\x88\x82\0\0\0\0\x03\xe8"
    text = b"\x81\x82\0\0\0\0{}"
    raw.sendall(frame('{"type": "response.create", "response": {"instructions": "x"}}') + close + text * 50)
    raw.settimeout(20)
    with contextlib.suppress(ConnectionError):
        while raw.recv(65536):
            pass
    raw.close()
    wait_until(lambda: is_idle(service))
    assert service.healthy


def test_no_compression_and_no_echo_of_keys(live: LiveServer) -> None:
    protocols: Any = ["realtime", "openai-insecure-api-key.abc"]
    with connect(address(live), proxy=None, subprotocols=protocols) as connection:
        assert connection.subprotocol == "realtime"
        assert connection.response is not None
        assert "Sec-WebSocket-Extensions" not in connection.response.headers
        assert "abc" not in str(connection.response.headers)


def test_only_so_many_sockets(service: Service) -> None:
    with client_of(service, Settings(max_sockets=1)) as client, client.websocket_connect(SOCKET):
        with pytest.raises(WebSocketDenialResponse) as caught, client.websocket_connect(SOCKET):
            pass
        assert (caught.value.status_code, caught.value.json()["error"]["code"]) == (503, "too_many_sockets")
        assert caught.value.headers["retry-after"]


# Clients that are slow, or leave


def upgrade(port: int) -> socket.socket:
    """A WebSocket by hand, up to the end of the server's handshake."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.connect(("127.0.0.1", port))
    raw.sendall(
        b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    raw.settimeout(20)
    assert raw.recv(12) == b"HTTP/1.1 101"
    return raw


def frame(text: str) -> bytes:
    data = text.encode()
    head = bytes([0x81, 0x80 | len(data)]) if len(data) < 126 else b"\x81\xfe" + struct.pack(">H", len(data))
    return head + bytes(4) + data  # masked with zeros


def ask_endlessly(port: int) -> socket.socket:
    raw = upgrade(port)
    raw.sendall(frame(json.dumps({"type": "response.create", "response": {"input": [user("hi")], **ENDLESS}})))
    return raw


def test_leaving_frees_the_engine(tmp_path: Path) -> None:
    with running_service(tmp_path, context_length=4096) as service, live_server(service) as live:
        raw = ask_endlessly(live.port)
        wait_until(lambda: service.loop.stats().generated_tokens >= 2)
        raw.close()
        wait_until(lambda: is_idle(service))
        assert service.loop.stats().generated_tokens < 3000


def test_a_reader_that_never_reads_is_dropped(tmp_path: Path) -> None:
    with (
        running_service(tmp_path, context_length=8192) as service,
        live_server(service, Settings(client_patience_s=0.3), small_buffers=True) as live,
    ):
        raw = ask_endlessly(live.port)
        wait_until(lambda: service.loop.stats().generated_tokens >= 20)
        wait_until(lambda: is_idle(service))
        assert service.loop.stats().generated_tokens < 8000
        wait_until(lambda: live.context.drain.busy == 0)
        raw.close()


def test_a_cancel_is_seen_while_a_prompt_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_service(tmp_path) as service, live_server(service) as live, chatting(live) as connection:
        made = threading.Event()

        async def prompt(messages: object) -> tuple[int, ...]:
            await asyncio.to_thread(made.wait, 30)
            return (1, 2, 3)

        with monkeypatch.context() as patched:
            patched.setattr(service, "prompt", prompt)
            say(connection, "response.create")
            say(connection, "conversation.item.create", item={**user("later"), "id": "later"})
            assert events_until(connection, "conversation.item.done")[-1]["item"]["id"] == "later"
            say(connection, "response.cancel")
            events = events_until(connection, "response.done")
            made.set()
        assert [event["type"] for event in events].count("response.created") == 1
        assert events[-1]["response"]["status"] == "cancelled"
        assert service.loop.stats().generated_tokens == 0
        say(connection, "response.create", response={"max_output_tokens": 2})
        assert events_until(connection, "response.done")[-1]["response"]["status"] != "cancelled"


def test_a_cancel_is_seen_while_the_client_is_behind(tmp_path: Path) -> None:
    with (
        running_service(tmp_path, context_length=8192) as service,
        live_server(service, Settings(max_outbox=4), small_buffers=True) as live,
    ):
        raw = ask_endlessly(live.port)
        wait_until(lambda: service.loop.stats().generated_tokens >= 20)
        raw.sendall(frame("{}") * 1000 + frame('{"type": "response.cancel", "response_id": null}'))
        wait_until(lambda: is_idle(service))
        assert service.loop.stats().generated_tokens < 8000
        assert live.context.drain.busy == 1  # the socket is still there
        raw.close()


def test_who_sends_on_without_reading_is_closed(tmp_path: Path) -> None:
    with (
        running_service(tmp_path) as service,
        live_server(service, Settings(max_outbox=4, max_unanswered=50_000), small_buffers=True) as live,
    ):
        with upgrade(live.port) as raw:
            with contextlib.suppress(ConnectionError, TimeoutError):
                raw.sendall(frame("{}") * 5000)
            data = b""
            with contextlib.suppress(ConnectionError):
                while part := raw.recv(65536):
                    data += part
        assert b"\x03\xf0You send on without reading" in data  # 1008
        wait_until(lambda: live.context.drain.busy == 0)


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
        running_service(tmp_path, context_length=600) as service,
        live_server(service, small_buffers=True) as live,
        chatting(live, max_queue=1) as connection,
    ):
        say(connection, "response.create", response=ENDLESS)
        wait_until(lambda: service.loop.stats().generated_tokens > 500)
        wait_until(lambda: is_idle(service))
        events = events_until(connection, "response.done")
        deltas = [event for event in events if event["type"] == "response.output_text.delta"]
        done = events[-1]["response"]
        assert "".join(delta["delta"] for delta in deltas) == done["output"][0]["content"][0]["text"]
        assert sum(delta["x_spec"]["emitted"] for delta in deltas) == done["usage"]["output_tokens"]
        assert [delta["x_seq"] for delta in deltas] == sorted({delta["x_seq"] for delta in deltas})
        assert len(deltas) < deltas[-1]["x_seq"]


def test_two_hundred_connects_and_drops(tmp_path: Path) -> None:
    """Sockets and requests dropped at every stage: no block is held, nothing runs, the next reply starts at once."""
    with running_service(tmp_path, context_length=1024, max_batch=8) as service, live_server(service) as live:
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
        wait_until(lambda: is_idle(service))
        assert len(service.streams) == 0
        with chatting(live) as connection:
            say(connection, "response.create", response={"max_output_tokens": 2, **ENDLESS})
            assert events_until(connection, "response.done")[-1]["response"]["status"] == "incomplete"


def reset(raw: socket.socket) -> None:
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raw.close()


# Shutdown


def test_a_drain_lets_replies_finish_and_says_good_bye(tmp_path: Path) -> None:
    with (
        running_service(tmp_path, context_length=400) as service,
        live_server(service, Settings(drain_s=60)) as live,
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
        running_service(tmp_path, context_length=8192) as service,
        live_server(service, Settings(drain_s=0.1)) as live,
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
        wait_until(lambda: is_idle(service))
    assert capfd.readouterr().err == ""
