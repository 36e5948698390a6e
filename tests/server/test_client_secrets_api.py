from __future__ import annotations

import time
from typing import Any

import pytest
from chat_completions import CHAT, HI
from service import SOCKET, client_of
from starlette.testclient import TestClient, WebSocketDenialResponse

from paceline.server.context import Settings
from paceline.server.service import Service

SECRETS = "/v1/realtime/client_secrets"
KEY = {"authorization": "Bearer main"}


@pytest.fixture
def client(service: Service) -> Any:
    with client_of(service, Settings(api_keys=("main",))) as client:
        yield client


def bearer(value: str) -> dict[str, str]:
    return {"authorization": f"Bearer {value}"}


def test_the_shape_of_the_interface(client: TestClient) -> None:
    asked = {
        "expires_after": {"anchor": "created_at", "seconds": 60},
        "session": {"type": "realtime", "model": "tiny", "instructions": "Be brief.", "max_output_tokens": 5},
    }
    body = client.post(SECRETS, headers=KEY, json=asked).json()
    assert set(body) == {"value", "expires_at", "session"}
    assert body["value"].startswith("ek_")
    assert 55 < body["expires_at"] - time.time() <= 60
    assert (body["session"]["type"], body["session"]["instructions"]) == ("realtime", "Be brief.")
    assert body["session"]["max_output_tokens"] == 5


def test_a_secret_opens_a_socket_with_its_settings(client: TestClient) -> None:
    session = {"instructions": "Be brief.", "max_output_tokens": 3, "temperature": 0}
    value = client.post(SECRETS, headers=KEY, json={"session": session}).json()["value"]
    protocols = ["realtime", f"openai-insecure-api-key.{value}"]
    with client.websocket_connect(SOCKET, subprotocols=protocols) as socket:
        created = socket.receive_json()
        assert created["type"] == "session.created"
        assert session.items() <= created["session"].items()
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
        socket.send_json({"type": "response.create", "response": {"input": [item]}})
        while (event := socket.receive_json())["type"] != "response.done":
            assert event["type"] != "error"
        assert event["response"]["usage"]["output_tokens"] <= 3


def test_a_secret_is_good_for_replies_and_nothing_else(client: TestClient) -> None:
    value = client.post(SECRETS, headers=KEY, content=b"").json()["value"]
    chat = {"messages": HI, "max_tokens": 1}
    assert client.post(CHAT, headers=bearer(value), json=chat).status_code == 200
    for path in (SECRETS, "/v1/realtime/sessions", "/tokenize"):
        answer = client.post(path, headers=bearer(value), json={})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "client_secret_not_allowed")
    for path in ("/metrics", "/v1/models"):
        assert client.get(path, headers=bearer(value)).status_code == 403
    assert client.post(CHAT, headers=bearer(value + "x"), json=chat).status_code == 401


def test_the_form_of_the_beta(client: TestClient) -> None:
    body = client.post("/v1/realtime/sessions", headers=KEY, json={"model": "tiny", "modalities": ["text"]}).json()
    assert body["object"] == "realtime.session"
    assert 50 < body["client_secret"]["expires_at"] - time.time() <= 60
    with client.websocket_connect(SOCKET, headers=bearer(body["client_secret"]["value"])) as socket:
        assert socket.receive_json()["type"] == "session.created"


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"expires_after": {"seconds": 9}}, "expires_after.seconds", None),
        ({"expires_after": {"seconds": 7201}}, "expires_after.seconds", None),
        ({"expires_after": {"seconds": "60"}}, "expires_after.seconds", None),
        ({"expires_after": {"anchor": "now"}}, "expires_after.anchor", None),
        ({"expires_after": 60}, "expires_after", None),
        ({"session": []}, "session", None),
        ({"session": {"type": "transcription"}}, "session.type", None),
        ({"session": {"model": "other"}}, "session.model", None),
        ({"session": {"output_modalities": ["audio"]}}, "session.output_modalities", "unsupported"),
        ({"session": {"temperature": "hot"}}, "session.temperature", None),
        ([], None, "invalid_json"),
    ],
)
def test_mistakes_are_named(client: TestClient, body: Any, param: str | None, code: str | None) -> None:
    answer = client.post(SECRETS, headers=KEY, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, param, code)
    assert error["message"].endswith(".")


def test_a_model_of_somebody_else_is_told_from_the_one_that_is_served(client: TestClient) -> None:
    error = client.post(SECRETS, headers=KEY, json={"session": {"model": "other"}}).json()["error"]
    assert error["message"].startswith("session.model must be 'tiny', which is served here")


def test_settings_that_are_too_long(client: TestClient) -> None:
    answer = client.post(SECRETS, headers=KEY, json={"session": {"instructions": "x" * 40_000}})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


def test_an_expired_secret_opens_nothing(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    value = client.post(SECRETS, headers=KEY, json={"expires_after": {"seconds": 10}}).json()["value"]
    later = time.time() + 11
    with monkeypatch.context() as patched:
        patched.setattr(client.app.state.secrets, "_clock", lambda: later)  # type: ignore[attr-defined]
        assert client.post(CHAT, headers=bearer(value), json={"messages": HI}).status_code == 401
        with (
            pytest.raises(WebSocketDenialResponse) as caught,
            client.websocket_connect(SOCKET, headers=bearer(value)),
        ):
            pass
        assert caught.value.status_code == 401


def test_a_server_without_keys_gives_secrets_too(service: Service) -> None:
    """A page that was written for guarded servers works as it is."""
    with client_of(service) as client:
        value = client.post(SECRETS, json={"session": {"instructions": "Be brief."}}).json()["value"]
        with client.websocket_connect(SOCKET, headers=bearer(value)) as socket:
            assert socket.receive_json()["session"]["instructions"] == "Be brief."
