"""What a client of chat completions can get wrong; every refusal comes before the first byte of an answer."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from chat_completions import CHAT, post
from raw_sockets import everything, raw_request
from service import LiveServer, client_of, live_server, running_service, wait_until_idle
from starlette.testclient import TestClient

from paceline.server.context import Settings
from paceline.server.service import Service


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        ({"messages": []}, 400, None, "messages"),
        ({"max_tokens": 0}, 400, None, "max_tokens"),
        ({"max_tokens": -1}, 400, None, "max_tokens"),
        ({"n": 0}, 400, None, "n"),
        ({"n": 1000}, 400, None, "n"),
        ({"temperature": "hot"}, 400, None, "temperature"),
        ({"stop": ["x"] * 10_000}, 400, None, "stop"),
        ({"model": "other"}, 404, "model_not_found", "model"),
        ({"messages": [{"role": "user", "content": "z" * 300}]}, 400, "context_length_exceeded", "messages"),
        ({"messages": [{"role": "user", "content": "z" * 100_000}]}, 400, "context_length_exceeded", "messages"),
        ({"tools": [{"type": "web_search"}]}, 400, "unsupported", "tools[0].type"),
        ({"response_format": {"type": "regex", "regex": "("}}, 400, "invalid_grammar", "response_format.regex"),
        ({"speculation": {"mode": "medusa"}}, 400, "unknown_speculator", "speculation.mode"),
    ],
)
def test_refusals(
    client: TestClient, stream: bool, body: dict[str, Any], status: int, code: str | None, param: str
) -> None:
    answer = post(client, stream=stream, **body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert error["message"].endswith(".")
    assert post(client).status_code == 200


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


def test_a_template_that_refuses_is_a_400_in_its_own_words(tmp_path: Any) -> None:
    from paceline.server.chat_template import ChatTemplate

    with running_service(tmp_path) as service, client_of(service) as client:
        source = "{{ raise_exception('Roles must alternate.') }}"
        service.template = ChatTemplate(source, None, None, service.tokenizer)
        answer = post(client)
        assert answer.status_code == 400
        assert "Roles must alternate." in answer.json()["error"]["message"]


def test_a_full_queue_is_a_429(tmp_path: Any) -> None:
    with running_service(tmp_path, max_batch=1, queue_limit=2) as service, client_of(service) as client:
        answer = post(client, n=16, max_tokens=100)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "overloaded")
        assert answer.headers["retry-after"]
        wait_until_idle(service)
        assert post(client).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_an_engine_that_fails(tmp_path: Any, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    """The reply says so, in the way that fits what was already sent; the server goes on."""
    with running_service(tmp_path) as service, client_of(service) as client:
        runner = service.loop.engine._runner
        forward = runner.forward

        def break_once(*args: Any) -> Any:
            runner.forward = forward  # type: ignore[method-assign]
            raise RuntimeError("out of luck")

        runner.forward = break_once  # type: ignore[method-assign]
        answer = post(client, stream=stream)
        if stream:
            first, done, _ = answer.text.split("\n\n")
            error = json.loads(first.removeprefix("data: "))["error"]
            assert (answer.status_code, done) == (200, "data: [DONE]")
        else:
            error = answer.json()["error"]
            assert answer.status_code == 500
        assert error["type"] == "server_error"
        assert "out of luck" not in answer.text
        assert "out of luck" in caplog.text
        assert post(client).status_code == 200


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
