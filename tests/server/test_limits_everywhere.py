"""Keys and limits as hostile or hasty clients meet them, on every protocol of a running server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from chat_completions import CHAT, HI
from realtime_client import address, closing_code, events_until, say, user
from service import ENDLESS, LiveServer, live_server, running_service, wait_for_tokens, wait_until
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

from paceline.engine.request import Request
from paceline.server.context import Settings
from paceline.server.key_file import KeyFile
from paceline.server.limits import Allowance, Holder
from paceline.server.service import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("limits"), context_length=8192) as service:
        yield service


@dataclass
class Guarded:
    """A server with a file of keys, and the key of anna."""

    live: LiveServer
    file: KeyFile
    key: str

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}

    @property
    def anna(self) -> Holder:
        holder = self.live.server.config.app.state.keys.find(self.key)  # type: ignore[union-attr]
        assert holder is not None
        return holder

    def chat(self, **body: Any) -> httpx.Response:
        body = {"messages": HI, "max_tokens": 2, **body}
        return httpx.post(f"{self.live.url}{CHAT}", headers=self.headers, json=body, trust_env=False, timeout=30)

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """A reply that has begun and does not end."""
        body = {"messages": HI, "stream": True, **ENDLESS}
        with httpx.stream(
            "POST", f"{self.live.url}{CHAT}", headers=self.headers, json=body, trust_env=False, timeout=30
        ) as answer:
            assert answer.status_code == 200
            lines = answer.iter_lines()
            next(lines)
            yield

    def socket(self) -> ClientConnection:
        return connect(address(self.live), additional_headers=self.headers, proxy=None)


@contextmanager
def guarded(service: Service, folder: Path, **limits: Any) -> Iterator[Guarded]:
    file = KeyFile(folder / "keys.json")
    key = file.add("anna", Allowance(**limits))
    with live_server(service, Settings(keys=file.path)) as live:
        yield Guarded(live, file, key)


def create(connection: ClientConnection, **response: Any) -> None:
    say(connection, "response.create", response={"input": [user("hi")], **response})


def refused(connection: ClientConnection) -> dict[str, Any]:
    create(connection, max_output_tokens=2)
    error: dict[str, Any] = events_until(connection, "error")[-1]["error"]
    return error


def test_one_limit_for_all_protocols_and_it_is_given_back(service: Service, tmp_path: Path) -> None:
    """However a reply ends: its client leaves, cancels, disconnects, or has it all."""
    with guarded(service, tmp_path, concurrency=1) as server, server.socket() as socket:
        with server.streaming():
            answer = server.chat()
            error = answer.json()["error"]
            assert (answer.status_code, error["type"]) == (429, "rate_limit_error")
            assert (error["code"], answer.headers["retry-after"]) == ("rate_limit_exceeded", "1")
            assert refused(socket)["code"] == "rate_limit_exceeded"
            assert server.anna.running == 1
        wait_until(lambda: server.anna.running == 0)  # the client of the stream has left

        create(socket, **ENDLESS)
        events_until(socket, "response.output_text.delta")
        assert server.chat().status_code == 429
        say(socket, "response.cancel")
        events_until(socket, "response.done")
        assert server.chat(n=3).status_code == 200  # three choices are one reply

        create(socket, **ENDLESS)
        events_until(socket, "response.output_text.delta")
        socket.close()
        wait_until(lambda: server.anna.running == 0)

        tokens = service.loop.stats().generated_tokens
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(
                f"{server.live.url}{CHAT}",
                headers=server.headers,
                json={"messages": HI, **ENDLESS},
                trust_env=False,
                timeout=httpx.Timeout(30, read=0.2),
            )
        wait_for_tokens(service, tokens + 1)
        wait_until(lambda: server.anna.running == 0)
        assert server.chat(stream=True).text.endswith("[DONE]\n\n")


def test_what_the_engine_refuses_takes_no_place_and_costs_nothing(service: Service, tmp_path: Path) -> None:
    with guarded(service, tmp_path, concurrency=1, tokens_per_minute=10_000) as server:
        before = server.anna.headers()["x-ratelimit-remaining-tokens"]
        for body in ({"messages": [{"role": "user", "content": "word " * 9000}]}, {"temperature": "hot"}):
            assert server.chat(**body).status_code == 400
        assert server.anna.running == 0
        assert server.anna.headers()["x-ratelimit-remaining-tokens"] == before


def test_tokens_of_a_minute(service: Service, tmp_path: Path) -> None:
    """Paid on every protocol, refused on every protocol, and back after the seconds that were told."""
    with guarded(service, tmp_path, tokens_per_minute=120) as server, server.socket() as socket:
        clock = [0.0]
        server.anna._clock = lambda: clock[0]
        server.anna.allowance = Allowance(tokens_per_minute=60)
        first = server.chat(max_tokens=100, **ENDLESS)
        assert first.headers["x-ratelimit-limit-tokens"] == "60"
        usage = first.json()["usage"]
        cost = usage["total_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
        assert cost > 60
        answer = server.chat()
        wait = int(answer.headers["retry-after"])
        assert (answer.status_code, wait) == (429, cost - 60 + 1)
        assert answer.headers["x-ratelimit-remaining-tokens"] == "0"
        error = refused(socket)
        assert (error["code"], f"try again in {wait} s" in error["message"]) == ("rate_limit_exceeded", True)
        too_long = {"messages": [{"role": "user", "content": "word " * 9000}]}
        assert server.chat(**too_long).status_code == 429  # before a prompt is made
        for path, body in (("/v1/completions", {"prompt": "x" * 9000}), ("/v1/responses", {"input": "x" * 9000})):
            answer = httpx.post(
                f"{server.live.url}{path}", headers=server.headers, json=body, trust_env=False, timeout=30
            )
            assert (answer.status_code, answer.headers["retry-after"]) == (429, str(wait))
        clock[0] += wait
        assert server.chat().status_code == 200
        assert server.chat().status_code == 429
        clock[0] += 3600
        create(socket, max_output_tokens=2)
        events_until(socket, "response.done")


def test_the_cache_is_free(service: Service, tmp_path: Path) -> None:
    with guarded(service, tmp_path, tokens_per_minute=100_000) as server:
        server.anna._clock = lambda: 0.0
        server.anna.allowance = Allowance(tokens_per_minute=200_000)

        def cost(answer: httpx.Response) -> tuple[int, int]:
            before = int(answer.headers["x-ratelimit-remaining-tokens"])
            usage = answer.json()["usage"]
            return before, usage["total_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]

        messages = [{"role": "user", "content": "a long story about a cat " * 10}]
        left, first = cost(server.chat(messages=messages))
        assert left == 200_000 - first
        again, second = cost(server.chat(messages=messages))
        assert second < first / 2
        assert again == left - second


def test_a_removed_key(service: Service, tmp_path: Path) -> None:
    """Opens nothing any more, and sockets that it opened ask for nothing any more; nor do its client secrets."""
    with guarded(service, tmp_path) as server, server.socket() as socket:
        answer = httpx.post(
            f"{server.live.url}/v1/realtime/client_secrets", headers=server.headers, json={}, trust_env=False
        )
        secret = {"authorization": f"Bearer {answer.json()['value']}"}
        with connect(address(server.live), additional_headers=secret, proxy=None) as browser:
            events_until(browser, "session.created")
            server.file.remove("anna")
            assert server.chat().status_code == 401
            for connection in (socket, browser):
                assert refused(connection)["code"] == "invalid_api_key"
                say(connection, "session.update", session={"instructions": "still here"})
                events_until(connection, "session.updated")
        for headers in (secret, server.headers, {"authorization": "Bearer pk_wrong"}, {}):
            with pytest.raises(InvalidStatus) as caught:
                connect(address(server.live), additional_headers=headers, proxy=None)
            assert caught.value.response.status_code == 401


def test_a_secret_shares_the_limits_of_its_key(service: Service, tmp_path: Path) -> None:
    with guarded(service, tmp_path, concurrency=1) as server:
        url = f"{server.live.url}/v1/realtime/client_secrets"
        value = httpx.post(url, headers=server.headers, json={}, trust_env=False).json()["value"]
        protocols: Any = ["realtime", f"openai-insecure-api-key.{value}"]
        with server.streaming(), connect(address(server.live), subprotocols=protocols, proxy=None) as browser:
            assert refused(browser)["code"] == "rate_limit_exceeded"


def test_the_best_class_of_a_key(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may ask for a better one, and gets that; the text is the same in every class."""
    texts = set()
    classes: list[str] = []
    submit = service.loop.submit

    def watched(request: Request) -> None:
        classes.append(request.priority)
        submit(request)

    monkeypatch.setattr(service.loop, "submit", watched)
    for best in ("interactive", "background"):
        (tmp_path / best).mkdir()
        with guarded(service, tmp_path / best, priority=best) as server:
            for priority in ("interactive", "normal", "background"):
                answer = server.chat(seed=3, priority=priority, max_tokens=8)
                texts.add(answer.json()["choices"][0]["message"]["content"])
    assert classes == ["interactive", "normal", "background", *["background"] * 3]
    assert len(texts) == 1


def test_a_drain_refuses_new_work_and_closes_sockets(service: Service, tmp_path: Path) -> None:
    with guarded(service, tmp_path) as server, server.socket() as socket:
        server.live.context.drain.requested.set()
        answer = server.chat()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        url = f"{server.live.url}/v1/realtime/client_secrets"
        assert httpx.post(url, headers=server.headers, json={}, trust_env=False).status_code == 503
        assert closing_code(socket) == 1001
