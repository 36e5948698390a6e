"""How a reply leaves over HTTP: writes, silence, failures."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from chat_completions import CHAT, HI, chunks, post
from service import HOST, client_of, running_service
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send
from token_replies import BrokenReader

from paceline.server.app import create_app
from paceline.server.context import Settings
from paceline.server.prepared import Prepared
from paceline.server.service import Service


def tapped(service: Service, settings: Settings, see: Callable[[bytes], object]) -> TestClient:
    """A client whose server shows every write of a body to `see`."""
    app = create_app(service, settings)

    async def through(scope: Scope, receive: Receive, send: Send) -> None:
        async def tap(message: Message) -> None:
            if message["type"] == "http.response.body" and message["body"]:
                see(message["body"])
            await send(message)

        await app(scope, receive, tap)

    return TestClient(through, base_url=HOST)


def test_the_role_comes_in_the_same_write_as_the_first_text(service: Service) -> None:
    writes: list[bytes] = []
    with tapped(service, Settings(), writes.append) as client:
        chunks(client)
    assert b'"role":"assistant"' in writes[0]
    assert writes[0].count(b"data: ") >= 2
    assert all(write.endswith(b"\n\n") for write in writes)
    assert writes[-1].endswith(b"data: [DONE]\n\n")


def test_silence_is_filled_with_comments(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    commented = threading.Event()
    runner = service.loop.engine._runner
    forward = runner.forward

    def after_a_comment(*args: Any) -> Any:
        assert commented.wait(30)
        return forward(*args)

    monkeypatch.setattr(runner, "forward", after_a_comment)
    with tapped(service, Settings(ping_interval_s=0.0), lambda body: commented.set()) as client:
        answer = post(client, stream=True)
    lines = [event for event in answer.text.split("\n\n") if event]
    assert ": ping" in lines
    assert all(line == ": ping" or line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"


def test_accept_never_chooses_the_format(client: TestClient) -> None:
    headers = {"accept": "application/json", "accept-encoding": "gzip"}
    answer = client.post(CHAT, json={"messages": HI, "max_tokens": 2, "stream": True}, headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "content-encoding" not in answer.headers


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


@pytest.mark.parametrize(
    ("path", "body", "last"),
    [
        ("/v1/chat/completions", {"messages": HI}, "data: [DONE]"),
        ("/v1/responses", {"input": "hi"}, "event: response.failed"),
    ],
)
def test_a_stream_whose_reader_breaks_has_its_last_event(
    service: Service, monkeypatch: pytest.MonkeyPatch, path: str, body: dict[str, Any], last: str
) -> None:
    prepare = service.prepare

    async def prepared(*args: Any) -> Prepared:
        return replace(await prepare(*args), reader=lambda _: BrokenReader(""))

    monkeypatch.setattr(service, "prepare", prepared)
    with client_of(service) as client:
        answer = client.post(path, json={**body, "model": "tiny", "stream": True})
    assert answer.status_code == 200
    assert answer.text.count("server_error") == 1
    assert answer.text.rstrip().split("\n\n")[-1].startswith(last)
