"""What a client of the realtime socket can get wrong."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import Any

import pytest
import websockets.exceptions
from raw_sockets import PING, all_bytes, frame, upgrade
from realtime_client import address, chatting, closing_code, events_until, say, user
from service import ENDLESS, MODEL_ID, SOCKET, LiveServer, client_of, live_server, wait_until_idle
from starlette.testclient import TestClient, WebSocketDenialResponse
from websockets.sync.client import connect

from paceline.server.context import Settings
from paceline.server.service import Service


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
    wait_until_idle(service)


def test_a_close_frame_arrives_at_a_client_that_is_still_sending(live: LiveServer, service: Service) -> None:
    """The server reads on to the client's end: closing at once would reset the connection under its own last words."""
    size = 2 * 2**20
    with upgrade(live.port) as raw:
        raw.sendall(b"\x81\xff" + struct.pack(">Q", size) + bytes(4))
        for _ in range(8):
            time.sleep(0.02)
            raw.sendall(bytes(size // 8))
        raw.shutdown(socket.SHUT_WR)
        received = all_bytes(raw)
    close = received[received.rindex(b"\x88") :]
    assert struct.unpack(">H", close[2:4]) == (1009,)
    wait_until_idle(service)


def test_text_that_is_no_text_closes_the_socket(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    with live_server(service) as live, chatting(live) as connection:
        connection.send(b"\xff\xfe", text=True)
        assert closing_code(connection) == 1007
        assert connection.close_reason == "Text frames must be UTF-8."
        with upgrade(live.port) as raw:
            raw.sendall(frame("xx").replace(b"xx", b"\xff\xfe") + PING)  # nothing can be answered any more
            assert b"\x03\xefText frames must be UTF-8." in all_bytes(raw)
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
    wait_until_idle(service)
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
