from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from service import SOCKET, build_service, client_of, running_service, wait_until
from starlette.testclient import TestClient, WebSocketDenialResponse

from paceline.engine.request import Request, SamplingParams
from paceline.server.app import create_app
from paceline.server.service import Service


@pytest.mark.parametrize("path", ["/nothing", "/v1/edits", "/v1/models/", "/v1/chat/completions/"])
def test_unknown_addresses(client: TestClient, path: str) -> None:
    for answer in (client.get(path), client.post(path, json={})):
        assert answer.status_code == 404 or (path == "/v1/models/" and answer.status_code == 405)
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_wrong_methods_are_told_the_right_one(client: TestClient) -> None:
    answer = client.get("/v1/chat/completions")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert "use POST" in answer.json()["error"]["message"]


def test_realtime_without_an_upgrade(client: TestClient) -> None:
    answer = client.get("/v1/realtime")
    assert (answer.status_code, answer.headers["upgrade"]) == (426, "websocket")
    assert answer.json()["error"]["code"] == "upgrade_required"


@pytest.mark.parametrize(
    ("url", "code"), [(SOCKET.replace("realtime", "other"), "not_found"), (f"{SOCKET}?model=other", "model_not_found")]
)
def test_sockets_to_nowhere_are_denied(client: TestClient, url: str, code: str) -> None:
    with pytest.raises(WebSocketDenialResponse) as caught, client.websocket_connect(url):
        pass
    assert (caught.value.status_code, caught.value.json()["error"]["code"]) == (404, code)


def test_health_and_ready(tmp_path: Path) -> None:
    """Health must see an engine that steps, not a process that answers."""
    service = build_service(tmp_path)
    with client_of(service) as client:
        assert client.get("/health").status_code == 503
        assert client.get("/ready").status_code == 503
        service.start()
        assert client.get("/health").json()["status"] == "ok"
        assert client.get("/ready").status_code == 200
        service.loop.stop()
        assert client.get("/health").status_code == 503
        assert client.get("/ready").status_code == 503


def test_an_engine_stuck_in_a_step_is_not_healthy(tmp_path: Path) -> None:
    with running_service(tmp_path) as service, client_of(service) as client:
        engine = service.loop.engine
        forward, released, entered = engine._runner.forward, threading.Event(), threading.Event()

        def stuck(*args: Any) -> Any:
            entered.set()
            released.wait()
            return forward(*args)

        engine._runner.forward = stuck  # type: ignore[method-assign]
        service.loop.submit(Request(id="a", prompt=(5, 6), sampling=SamplingParams(max_tokens=2, seed=1)))
        entered.wait()
        assert client.get("/health").status_code == 200
        engine.telemetry.last_progress -= 3600  # an hour passes
        answer = client.get("/health")
        assert (answer.status_code, answer.json()["status"]) == (503, "stuck")
        released.set()
        wait_until(lambda: client.get("/health").status_code == 200)


def test_a_draining_server_is_healthy_but_not_ready(service: Service) -> None:
    app = create_app(service)
    with TestClient(app, base_url="http://localhost") as client:
        app.state.context.drain.requested.set()
        assert client.get("/health").status_code == 200
        assert client.get("/ready").status_code == 503
        answer = client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "hi"}]})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "shutting_down")
        assert answer.headers["retry-after"]
        assert answer.headers["retry-after"]
        with pytest.raises(WebSocketDenialResponse) as caught, client.websocket_connect(SOCKET):
            pass
        assert caught.value.status_code == 503


def test_the_metrics_page(client: TestClient) -> None:
    client.get("/v1/models")
    client.get("/somewhere/random")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'paceline_http_responses_total{route="/v1/models",status="200"}' in answer.text
    assert "random" not in answer.text  # paths that clients invent do not become labels


def test_a_bug_is_a_500_with_a_log_and_without_details(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with running_service(tmp_path) as service, client_of(service) as client:
        service.speculators = None  # type: ignore[assignment]
        with caplog.at_level(logging.ERROR, "paceline.server"):
            answer = client.get("/v1/models")
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
        assert "NoneType" not in answer.text
        assert "NoneType" in caplog.text
