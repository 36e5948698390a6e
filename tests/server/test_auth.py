from __future__ import annotations

import pytest
from service import HOST, SOCKET, client_of
from starlette.datastructures import Headers
from starlette.testclient import WebSocketDenialResponse

from paceline.server.auth import host_is_allowed, key_of, origin_is_allowed
from paceline.server.context import Settings
from paceline.server.service import Service

KEYS = Settings(api_keys=("first-key", "sécond"))


@pytest.mark.parametrize(
    ("host", "listed", "allowed"),
    [
        ("localhost", (), True),
        ("LOCALHOST:8377", (), True),
        ("app.localhost:1", (), True),
        ("127.0.0.1:8377", (), True),
        ("[::1]:8377", (), True),
        ("192.168.1.7", (), True),
        ("evil.example", (), False),
        ("127.0.0.1.evil.example", (), False),
        ("", (), False),
        ("[bad", (), False),
        ("box.lan:8377", ("box.lan",), True),
        ("box.lan:8377", ("BOX.LAN:8377",), True),
        ("box.lan", ("other.lan",), False),
        ("anything", ("*",), True),
    ],
)
def test_hosts(host: str, listed: tuple[str, ...], allowed: bool) -> None:
    assert host_is_allowed(host, listed) == allowed


@pytest.mark.parametrize(
    ("origin", "listed", "allowed"),
    [
        (None, (), True),
        ("http://localhost:8377", (), True),
        ("https://localhost:8377", (), True),
        ("http://localhost:3000", (), False),
        ("http://evil.example", (), False),
        ("null", (), False),
        ("", (), False),
        ("http://[bad", (), False),
        ("http://localhost:3000", ("http://localhost:3000",), True),
        ("http://evil.example", ("*",), True),
    ],
)
def test_origins(origin: str | None, listed: tuple[str, ...], allowed: bool) -> None:
    assert origin_is_allowed(origin, "localhost:8377", listed) == allowed


def test_keys_from_the_header_or_the_subprotocol() -> None:
    assert key_of(Headers({"authorization": "Bearer abc"})) == "abc"
    assert key_of(Headers({"authorization": "bearer  abc"})) == "abc"
    assert key_of(Headers({"authorization": "Basic abc"})) is None
    assert key_of(Headers(), ["realtime", "openai-insecure-api-key.abc"]) == "abc"
    assert key_of(Headers(), ["realtime"]) is None


def test_the_api_and_the_metrics_are_guarded_the_rest_is_open(service: Service) -> None:
    with client_of(service, KEYS) as client:
        for path in ("/v1/models", "/v1/nothing", "/metrics", "/v1", "/tokenize", "/detokenize"):
            answer = client.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
            assert answer.headers["www-authenticate"] == "Bearer"
        for path in ("/health", "/ready"):
            assert client.get(path).status_code == 200
        assert client.get("/").status_code in (200, 404)  # 404 where the page is not built
        assert client.get("/v1/models", headers={"authorization": "Bearer first-key"}).status_code == 200
        assert client.get("/metrics", headers={"authorization": "Bearer first-key"}).status_code == 200
        wrong = client.get("/v1/models", headers={"authorization": "Bearer wrong"})
        assert "not known" in wrong.json()["error"]["message"]


def test_the_key_is_asked_for_before_the_body_is_looked_at(service: Service) -> None:
    with client_of(service, KEYS) as client:
        assert client.post("/v1/chat/completions", content=b"{").status_code == 401


def test_preflights_need_no_key_and_refusals_carry_cors(service: Service) -> None:
    page = "http://page.example"
    settings = Settings(api_keys=("key",), allowed_origins=(page,))
    with client_of(service, settings) as client:
        preflight = client.options(
            "/v1/chat/completions",
            headers={
                "origin": page,
                "access-control-request-method": "POST",
                "access-control-request-headers": "authorization,content-type,x-stainless-os",
            },
        )
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == page
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        refused = client.get("/v1/models", headers={"origin": page})
        assert refused.status_code == 401
        assert refused.headers["access-control-allow-origin"] == page
        assert "x-request-id" in refused.headers["access-control-expose-headers"]


def test_pages_from_elsewhere_are_kept_out(service: Service) -> None:
    with client_of(service) as client:
        answer = client.get("/v1/models", headers={"origin": "http://evil.example"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "origin_not_allowed")
        assert "access-control-allow-origin" not in answer.headers
        assert client.get("/v1/models", headers={"origin": HOST}).status_code == 200
        answer = client.get("/", headers={"host": "rebound.example"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "host_not_allowed")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"sec-websocket-protocol": "realtime, openai-insecure-api-key.wrong"}, 401),
        ({"authorization": "Bearer first-key", "origin": "http://evil.example"}, 403),
        ({"authorization": "Bearer first-key", "host": "rebound.example"}, 403),
    ],
)
def test_sockets_are_refused_before_they_are_accepted(service: Service, headers: dict[str, str], status: int) -> None:
    with (
        client_of(service, KEYS) as client,
        pytest.raises(WebSocketDenialResponse) as caught,
        client.websocket_connect(SOCKET, headers=headers),
    ):
        pass
    assert caught.value.status_code == status
    assert caught.value.json()["error"]["message"]


def test_the_key_is_never_echoed(service: Service) -> None:
    with client_of(service, KEYS) as client:
        protocols = ["realtime", "openai-insecure-api-key.first-key"]
        with client.websocket_connect(SOCKET, subprotocols=protocols) as socket:
            assert socket.accepted_subprotocol == "realtime"
        with client.websocket_connect(SOCKET, subprotocols=protocols[1:]) as socket:
            assert socket.accepted_subprotocol is None


def test_too_many_headers(service: Service) -> None:
    headers = {f"x-{i}": "1" for i in range(101)}
    with client_of(service) as client:
        answer = client.get("/v1/models", headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (431, "headers_too_large")
        with pytest.raises(WebSocketDenialResponse), client.websocket_connect(SOCKET, headers=headers):
            pass


def test_sockets_of_one_key(service: Service) -> None:
    """Are counted for it alone, and no longer than they are open."""
    settings = Settings(api_keys=("first-key", "other-key"), max_sockets_per_key=2)
    mine, other = {"authorization": "Bearer first-key"}, {"authorization": "Bearer other-key"}
    with client_of(service, settings) as client:
        for _ in range(2):
            with client.websocket_connect(SOCKET, headers=mine), client.websocket_connect(SOCKET, headers=mine):
                with pytest.raises(WebSocketDenialResponse) as caught, client.websocket_connect(SOCKET, headers=mine):
                    pass
                assert (caught.value.status_code, caught.value.json()["error"]["code"]) == (429, "too_many_sockets")
                assert caught.value.headers["retry-after"]
                with client.websocket_connect(SOCKET, headers=other) as socket:
                    assert socket.receive_json()["type"] == "session.created"


def test_every_answer_has_a_request_id_of_its_own(service: Service) -> None:
    with client_of(service, KEYS) as client:
        paths = ("/", "/v1/models", "/nothing", "/health")
        ids = [client.get(path).headers["x-request-id"] for path in paths]
        assert len(set(ids)) == len(paths)
        with client.websocket_connect(SOCKET, headers={"authorization": "Bearer first-key"}) as socket:
            assert b"x-request-id" in dict(socket.extra_headers or [])
