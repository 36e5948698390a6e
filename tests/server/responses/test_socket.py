"""WS /v1/responses as clients see it: the stock SDK, leaving, cancelling, and a server that stops."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from raw_sockets import frame, upgrade
from realtime_client import closing_code, events_until, say
from responses_api import REPLY, RESPONSES, check_stream, order_of, output_text, post
from service import ENDLESS, MODEL_ID, LiveServer, running_server, wait_for_tokens, wait_until, wait_until_idle
from starlette.testclient import TestClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from paceline.server.context import Settings
from paceline.server.prepared import Prepared
from paceline.server.service import Service

# The stock SDK opens its socket in a way that the websockets library wants replaced.
stock_sdk = pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")


def address(live: LiveServer) -> str:
    return f"ws://127.0.0.1:{live.port}{RESPONSES}"


@pytest.fixture
def socket(live: LiveServer) -> Iterator[ClientConnection]:
    with connect(address(live), proxy=None) as connection:
        yield connection


def create(connection: ClientConnection, said: Any = "hi there", **fields: Any) -> None:
    say(connection, "response.create", input=said, max_output_tokens=fields.pop("max_output_tokens", 8), **fields)


@stock_sdk
def test_sdk(live: LiveServer) -> None:
    with (
        openai.OpenAI(
            base_url=f"{live.url}/v1", websocket_base_url=f"ws://127.0.0.1:{live.port}/v1", api_key="unused"
        ) as sdk,
        sdk.responses.connect() as connection,
    ):
        connection.response.create(model=MODEL_ID, input="hi", max_output_tokens=8, store=False)
        text = ""
        for event in connection:
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type in ("response.completed", "response.incomplete"):
                break
        assert isinstance(event.response, Response)
        assert event.response.output_text == text != ""
        connection.response.create(
            model=MODEL_ID, input="more", max_output_tokens=2, previous_response_id=event.response.id, store=False
        )
        assert connection.recv().type == "response.created"


def test_what_comes_is_what_http_says(socket: ClientConnection, client: TestClient) -> None:
    asked: dict[str, Any] = {"seed": 3, "stop": ["zzz"], **ENDLESS}
    create(socket, **asked)
    events = events_until(socket, "response.incomplete")
    check_stream(events, merged=True)
    assert order_of(events)[:-1] == REPLY[:-1]
    whole = post(client, **asked).json()
    assert output_text(events[-1]["response"]) == output_text(whole)
    assert events[-1]["response"]["usage"]["output_tokens"] == whole["usage"]["output_tokens"]


def test_a_chain_prefilled_ahead_finds_its_prompt_in_the_cache(socket: ClientConnection) -> None:
    history = "a rather long question, longer than some blocks of the cache are"
    create(socket, history, generate=False, store=False)
    warm = events_until(socket, "response.completed")[-1]["response"]
    assert (warm["output"], warm["usage"]["output_tokens"]) == ([], 0)
    create(socket, "and?", previous_response_id=warm["id"], store=False, **ENDLESS)
    usage = events_until(socket, "response.incomplete")[-1]["response"]["usage"]
    assert usage["input_tokens"] > warm["usage"]["input_tokens"]
    assert usage["input_tokens_details"]["cached_tokens"] >= 16
    assert usage["input_tokens_details"]["cached_tokens"] >= warm["usage"]["input_tokens"] // 16 * 16 - 32


def test_lanes_run_side_by_side(socket: ClientConnection) -> None:
    for lane in ("a", "b"):
        create(socket, stream_id=lane, max_output_tokens=40, **ENDLESS)
    events: list[dict[str, Any]] = []
    while [event["type"] for event in events].count("response.incomplete") < 2:
        events.append(json.loads(socket.recv(timeout=30)))
    for lane in ("a", "b"):
        check_stream([event for event in events if event["stream_id"] == lane], merged=True)
    kinds = [(event["type"], event["stream_id"]) for event in events]
    assert kinds.index(("response.created", "b")) < kinds.index(("response.incomplete", "a"))


def test_cancel_frees_the_engine(socket: ClientConnection, service: Service) -> None:
    create(socket, max_output_tokens=None, store=False, **ENDLESS)
    events_until(socket, "response.output_text.delta")
    say(socket, "response.cancel")
    last = events_until(socket, "response.incomplete")[-1]["response"]
    assert last["status"] == "cancelled"
    wait_until_idle(service)
    create(socket, "more", previous_response_id=last["id"])
    assert events_until(socket, "response.created")


def test_steering(socket: ClientConnection, service: Service) -> None:
    create(socket, max_output_tokens=None, **ENDLESS)
    first = events_until(socket, "response.output_text.delta")[0]["response"]["id"]
    say(socket, "response.steer", previous_response_id=first, input="shorter")
    events = events_until(socket, "response.created")
    assert {"response.steer.accepted", "response.incomplete"} <= {event["type"] for event in events}
    assert events[-1]["response"]["previous_response_id"] == first
    say(socket, "response.cancel")
    events_until(socket, "response.incomplete")
    wait_until_idle(service)


def test_mistakes_leave_the_socket_open(socket: ClientConnection) -> None:
    for message in (
        "no json",
        '{"type": "response.create"}',
        '{"type": "response.create", "input": "' + "z" * 5000 + '"}',
    ):
        socket.send(message)
        error = json.loads(socket.recv(timeout=30))
        assert (error["type"], error["status"]) == ("error", 400)
    assert error["error"]["code"] == "context_length_exceeded"
    assert error["error"]["param"] == "input"
    say(socket, "response.create", input="x", model="gpt-9")
    assert json.loads(socket.recv(timeout=30))["error"]["code"] == "model_not_found"
    create(socket)
    assert events_until(socket, "response.created")


def test_binary_frames_close(socket: ClientConnection) -> None:
    socket.send(b"{}")
    assert closing_code(socket) == 1003


def test_a_plain_get_is_told_to_upgrade(client: TestClient) -> None:
    answer = client.get(RESPONSES)
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")


def test_refused_before_it_is_accepted(live: LiveServer) -> None:
    with pytest.raises(InvalidStatus) as refused, connect(f"{address(live)}?model=gpt-9", proxy=None):
        pass
    assert refused.value.response.status_code == 404


def test_leaving_frees_the_engine_and_the_pins(tmp_path: Path) -> None:
    with running_server(tmp_path, context_length=4096) as live:
        with connect(address(live), proxy=None) as connection:
            create(connection, "long enough to fill more than one block of the cache", **ENDLESS)
            events_until(connection, "response.incomplete")
            wait_until(lambda: live.service.loop.stats().blocks_pinned > 0)
            create(connection, max_output_tokens=None, **ENDLESS)
            wait_for_tokens(live.service, 12)
        wait_until_idle(live.service)
        wait_until(lambda: live.service.loop.stats().blocks_pinned == 0)
        assert live.service.loop.stats().generated_tokens < 3000


def test_a_cancel_is_seen_while_a_prompt_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_server(tmp_path) as live, connect(address(live), proxy=None) as connection:
        made = threading.Event()

        async def prepare(*_: object) -> Prepared:
            await asyncio.to_thread(made.wait, 30)
            return Prepared((1, 2, 3))

        with monkeypatch.context() as patched:
            patched.setattr(live.service, "prepare", prepare)
            create(connection)
            say(connection, "response.cancel")
            events = events_until(connection, "response.incomplete")
            made.set()
        assert [event["type"] for event in events].count("response.created") == 1
        assert events[-1]["response"]["status"] == "cancelled"
        assert live.service.loop.stats().generated_tokens == 0


def test_a_reader_that_never_reads_is_dropped(tmp_path: Path) -> None:
    settings = Settings(client_patience_s=0.3)
    with running_server(tmp_path, settings, small_buffers=True, context_length=8192) as live:
        raw = upgrade(live.port, RESPONSES)
        raw.sendall(frame(json.dumps({"type": "response.create", "input": "hi", "top_logprobs": 20, **ENDLESS})))
        wait_for_tokens(live.service, 20)
        wait_until_idle(live.service)
        wait_until(lambda: live.context.drain.busy == 0)
        assert live.service.loop.stats().generated_tokens < 8000
        raw.close()


def test_a_server_that_stops_lets_replies_finish(tmp_path: Path) -> None:
    with running_server(tmp_path, context_length=1024) as live, connect(address(live), proxy=None) as connection:
        create(connection, max_output_tokens=200, **ENDLESS)
        events_until(connection, "response.output_text.delta")
        live.stop()
        events_until(connection, "response.incomplete")
        assert closing_code(connection) == 1001
