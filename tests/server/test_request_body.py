"""Bodies that are no request, and bodies that do not come."""

from __future__ import annotations

import socket

import pytest
from chat_completions import CHAT
from raw_sockets import everything, raw_request
from service import LiveServer, live_server, wait_until
from starlette.testclient import TestClient

from paceline.server.context import Settings
from paceline.server.service import Service


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b'{"temperature": NaN}', "application/json", 400),
        (b"[]", "application/json", 400),
        (b"messages=hi", "application/x-www-form-urlencoded", 415),
        (b"x" * (2**20 + 1), "application/json", 413),
        (b"x" * (9 * 2**20), "application/json", 413),
    ],
)
def test_bodies_that_are_no_request(client: TestClient, content: bytes, kind: str, status: int) -> None:
    answer = client.post(CHAT, content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_body_that_never_ends_is_a_408(service: Service, capfd: pytest.CaptureFixture[str]) -> None:
    with live_server(service, Settings(request_patience_s=0.2)) as live:
        for body in (b"", b'{"messages"'):
            with socket.create_connection(("127.0.0.1", live.port)) as connection:
                connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n".encode())
                connection.sendall(body)
                answer = everything(connection)
            assert answer.startswith("HTTP/1.1 408")
            assert '"code":"request_timeout"' in answer
        assert client_reads_all(live)
    assert capfd.readouterr().err == ""


def client_reads_all(live: LiveServer) -> bool:
    """Replies may last longer than requests may take to arrive."""
    with raw_request(live.port, True) as connection:
        return '"finish_reason":"length"' in everything(connection, b"[DONE]")


def test_a_client_that_leaves_before_its_body_is_there_is_no_error(
    service: Service, capfd: pytest.CaptureFixture[str]
) -> None:
    def left() -> float:
        labels = {"route": CHAT, "status": "499"}
        return service.metrics.registry.get_sample_value("paceline_http_responses_total", labels) or 0.0

    before = left()
    with live_server(service) as live, socket.create_connection(("127.0.0.1", live.port)) as connection:
        connection.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{{".encode())
        wait_until(lambda: live.context.drain.busy == 1)
        connection.close()
        wait_until(lambda: left() == before + 1)
    assert capfd.readouterr().err == ""
