"""What the server does with clients that stay silent, send rubbish, or are too many. Those that do not read:
test_realtime_leaving.py."""

from __future__ import annotations

import json
import socket

import pytest
from raw_sockets import everything, upgrade
from service import LiveServer, live_server, wait_until
from websockets.sync.client import connect

from paceline.server.context import Settings
from paceline.server.service import Service


def test_connections_without_a_request_are_closed(service: Service) -> None:
    whole = b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n"
    upgrade = b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    with (
        live_server(service, Settings(request_patience_s=0.2)) as live,
        connect(f"ws://127.0.0.1:{live.port}/v1/realtime", proxy=None) as session,
    ):
        session.recv()
        for sent in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost:", upgrade, whole + whole[:20]):
            with socket.create_connection(("127.0.0.1", live.port)) as silent:
                silent.sendall(sent)
                assert everything(silent).startswith("HTTP/1.1 200") == sent.startswith(whole)
        session.send("{}")  # a session may be silent for longer
        assert json.loads(session.recv())["type"] == "error"


def refusal(answer: str) -> tuple[str, str]:
    """Status and code of a refusal that is whole."""
    head, _, body = answer.partition("\r\n\r\n")
    assert f"content-length: {len(body)}" in head
    assert "connection: close" in head
    error = json.loads(body)["error"]
    assert error["message"].endswith(".")
    return head.split()[1], error["code"]


GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
UPGRADE = b"Connection: upgrade\r\nUpgrade: websocket\r\n"
LARGE = b"a" * 2**20
TOO_LARGE, NO_HTTP = ("431", "headers_too_large"), ("400", "invalid_http")


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (GET + b"X-A: aaaaaaaaaaaaaaaaaaaaaaaa\r\n" * 35_000, TOO_LARGE),
        (GET + b"X-A: " + LARGE, TOO_LARGE),
        (GET + UPGRADE + b"X-A: " + LARGE, TOO_LARGE),
        (b"GET /" + LARGE, TOO_LARGE),
        (b"\x16\x03\x01\x02\x00" * 10 + b"\r\n\r\n", NO_HTTP),
        (GET + b"Content-Length: many\r\n\r\n", NO_HTTP),
    ],
)
def test_what_is_no_request_gets_an_answer(live: LiveServer, sent: bytes, answer: tuple[str, str]) -> None:
    """Which arrives, though the client goes on sending; and the server lives."""
    with socket.create_connection(("127.0.0.1", live.port)) as raw:
        raw.sendall(sent)
        assert refusal(everything(raw)) == answer
    assert live.service.healthy


def test_a_body_that_breaks_off_gets_an_answer(live: LiveServer) -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", live.port)) as raw:
        raw.sendall(head + b"5\r\nhello\r\nno number\r\n")
        assert refusal(everything(raw)) == ("400", "invalid_http")
    wait_until(lambda: live.context.drain.busy == 0)


def test_so_many_connections_and_no_more(service: Service) -> None:
    """Sockets count too, and whoever leaves makes room."""
    with live_server(service, Settings(max_connections=2)) as live:
        place = ("127.0.0.1", live.port)
        census = live.server.config.http_protocol_class.census  # type: ignore[attr-defined]
        with upgrade(live.port), socket.create_connection(place) as second:
            for request in (b"", b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n", b"x" * 100_000):
                with socket.create_connection(place) as third:
                    third.sendall(request)
                    answer = everything(third)
                    assert refusal(answer) == ("503", "too_many_connections")
                    assert "retry-after: 1\r\n" in answer
            assert census.total == 2
            second.close()
            wait_until(lambda: census.total == 1)
            with socket.create_connection(place) as third:
                third.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert everything(third).startswith("HTTP/1.1 200")
        wait_until(lambda: census.total == 0)


def test_who_is_refused_and_stays_is_let_go(service: Service) -> None:
    with live_server(service, Settings(max_connections=1)) as live:
        place = ("127.0.0.1", live.port)
        with socket.create_connection(place), socket.create_connection(place) as second:
            everything(second)
            wait_until(lambda: len(live.server.server_state.connections) == 1)  # while it still holds its side open


def test_so_many_from_one_address(service: Service) -> None:
    with live_server(service, Settings(max_connections_per_address=1)) as live:
        place = ("127.0.0.1", live.port)
        with socket.create_connection(place), socket.create_connection(place) as second:
            assert "from your address" in everything(second)


def test_messages_are_compressed_only_if_asked(service: Service) -> None:
    for compress in (False, True):
        with (
            live_server(service, Settings(compress=compress)) as live,
            connect(f"ws://127.0.0.1:{live.port}/v1/realtime", proxy=None) as session,
        ):
            assert bool(session.protocol.extensions) == compress
            assert json.loads(session.recv())["type"] == "session.created"
