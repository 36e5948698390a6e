"""Chat completions as clients see them: the stock SDK, raw bytes, and everything a client can get wrong."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from service import HOST, MODEL_ID, LiveServer, client_of, is_idle, live_server, running_service, wait_until
from starlette.testclient import TestClient

from paceline.server.context import Settings
from paceline.server.service import Service

HI = [{"role": "user", "content": "hi there"}]
CHAT = "/v1/chat/completions"


@pytest.fixture
def sdk(live: LiveServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused", max_retries=0) as sdk:
        yield sdk


def post(client: TestClient, **body: Any) -> Any:
    return client.post(CHAT, json={"messages": HI, "max_tokens": 8, "seed": 1, **body})


def chunks(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    """The parsed events of a stream, whose framing is checked byte by byte."""
    answer = post(client, stream=True, **body)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, last, rest = answer.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    assert all(event.startswith("data: {") and "\n" not in event for event in events)
    return [json.loads(event.removeprefix("data: ")) for event in events]


def text_of(events: list[dict[str, Any]], index: int = 0) -> str:
    choices = [choice for event in events for choice in event["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


# The stock SDK


def test_sdk_chat(sdk: openai.OpenAI) -> None:
    reply = sdk.chat.completions.create(model=MODEL_ID, messages=HI, max_tokens=8, seed=1)  # type: ignore[arg-type]
    assert reply.choices[0].message.role == "assistant"
    assert reply.choices[0].message.content
    assert reply.choices[0].finish_reason in ("length", "stop")
    assert reply.usage is not None
    assert reply.usage.completion_tokens <= 8
    assert reply.system_fingerprint
    assert reply._request_id is not None
    assert reply._request_id.startswith("req_")


def test_sdk_stream_equals_the_whole_reply(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "default", "messages": HI, "max_tokens": 20, "seed": 3}
    whole = sdk.chat.completions.create(**asked)
    stream = list(sdk.chat.completions.create(stream=True, stream_options={"include_usage": True}, **asked))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices) == (
        whole.choices[0].message.content
    )
    assert stream[0].choices[0].delta.role == "assistant"
    assert stream[-1].usage is not None
    assert whole.usage is not None
    assert stream[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert stream[-1].model == MODEL_ID


def test_sdk_errors(sdk: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="not served here") as missing:
        sdk.chat.completions.create(model="gpt-9", messages=HI)  # type: ignore[arg-type]
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="maximum context length") as long:
        sdk.chat.completions.create(model="default", messages=[{"role": "user", "content": "z" * 5000}], stream=True)
    assert (long.value.code, long.value.param) == ("context_length_exceeded", "messages")
    with pytest.raises(openai.BadRequestError, match="temperature") as hot:
        sdk.chat.completions.create(model="default", messages=HI, temperature=-1)  # type: ignore[arg-type]
    assert hot.value.param == "temperature"


def test_sdk_wrong_key(service: Service) -> None:
    with live_server(service, Settings(api_keys=("right",))) as live:
        for key, fails in (("wrong", True), ("right", False)):
            with openai.OpenAI(base_url=f"{live.url}/v1", api_key=key, max_retries=0) as sdk:
                if fails:
                    with pytest.raises(openai.AuthenticationError):
                        sdk.models.list()
                else:
                    assert [model.id for model in sdk.models.list()] == [MODEL_ID]


def test_sdk_closing_a_stream_frees_the_engine(sdk: openai.OpenAI, service: Service) -> None:
    stream = sdk.chat.completions.create(model="default", messages=HI, stream=True)  # type: ignore[arg-type]
    next(iter(stream))
    stream.close()
    wait_until(lambda: is_idle(service))


# The chunk contract


def test_chunk_order(client: TestClient) -> None:
    events = chunks(client)
    assert all((e["id"], e["created"], e["model"]) == (events[0]["id"], events[0]["created"], MODEL_ID) for e in events)
    deltas = [event["choices"][0]["delta"] for event in events]
    finishes = [event["choices"][0]["finish_reason"] for event in events]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert all(set(delta) == {"content"} and delta["content"] for delta in deltas[1:-1])
    assert deltas[-1] == {}
    assert finishes == [None] * (len(events) - 1) + ["length"]
    assert not any("usage" in event for event in events)
    assert events[-1]["seed"] == 1


def test_the_role_comes_in_the_same_write_as_the_first_text(service: Service) -> None:
    from starlette.types import Message

    from paceline.server.app import create_app

    writes: list[bytes] = []
    app = create_app(service)

    async def tapped(scope: Any, receive: Any, send: Any) -> None:
        async def tap(message: Message) -> None:
            if message["type"] == "http.response.body" and message["body"]:
                writes.append(message["body"])
            await send(message)

        await app(scope, receive, tap)

    with TestClient(tapped, base_url=HOST) as client:
        chunks(client)
    assert b'"role":"assistant"' in writes[0]
    assert writes[0].count(b"data: ") >= 2
    assert all(write.endswith(b"\n\n") for write in writes)
    assert writes[-1].endswith(b"data: [DONE]\n\n")


def test_usage_only_when_asked_and_then_alone(client: TestClient) -> None:
    events = chunks(client, stream_options={"include_usage": True})
    assert events[-1]["choices"] == []
    assert events[-1]["usage"]["completion_tokens"] == 8
    assert events[-1]["metrics"]["speculative_decoding"]["acceptance_histogram"]
    assert [bool(event["choices"]) for event in events] == [True] * (len(events) - 1) + [False]


def test_continuous_usage(client: TestClient) -> None:
    events = chunks(client, stream_options={"include_usage": True, "continuous_usage_stats": True})
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts)
    assert counts[-1] == 8


def test_several_choices(client: TestClient) -> None:
    events = chunks(client, n=3)
    body = post(client, n=3).json()
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    for i in range(3):
        own = [e["choices"][0] for e in events if e["choices"][0]["index"] == i]
        assert [choice["finish_reason"] for choice in own].count("length") == 1
        assert own[0]["delta"]["role"] == "assistant"
        assert text_of(events, i) == body["choices"][i]["message"]["content"]
    assert body["choices"][0]["message"]["content"] == post(client).json()["choices"][0]["message"]["content"]
    assert body["usage"]["completion_tokens"] == 24


def test_speculation_changes_no_byte(client: TestClient) -> None:
    """Telemetry aside, and the last bits of logprobs. The prompt repeats itself, so that something is drafted."""
    repeated = [{"role": "user", "content": "the cat sat on the mat; " * 6}]
    for temperature in (0, 0.8):
        asked: dict[str, Any] = {"messages": repeated, "max_tokens": 40, "temperature": temperature, "logprobs": True}
        plain, spec = (post(client, **asked, speculation={"mode": mode}).json() for mode in ("none", "ngram"))
        (one,), (other,) = spec["choices"], plain["choices"]
        assert one["message"] == other["message"]
        assert one["finish_reason"] == other["finish_reason"]
        logprobs, expected = (choice["logprobs"]["content"] for choice in (one, other))
        assert [entry["bytes"] for entry in logprobs] == [entry["bytes"] for entry in expected]
        assert [e["logprob"] for e in logprobs] == pytest.approx([e["logprob"] for e in expected], abs=1e-3)
        assert spec["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
        assert plain["metrics"]["speculative_decoding"]["num_draft_tokens"] == 0
        assert temperature or spec["metrics"]["speculative_decoding"]["num_draft_tokens"] > 0
        streamed = chunks(client, **asked, speculation={"mode": "ngram", "telemetry": True})
        assert text_of(streamed) == plain["choices"][0]["message"]["content"]
        emitted = sum(event.get("x_spec", {}).get("emitted", 0) for event in streamed)
        assert emitted == plain["usage"]["completion_tokens"]


def test_logprobs(client: TestClient) -> None:
    whole = post(client, logprobs=True, top_logprobs=2).json()["choices"][0]["logprobs"]["content"]
    assert len(whole) == 8
    assert all(len(entry["top_logprobs"]) == 2 and entry["logprob"] < 0 for entry in whole)
    streamed = chunks(client, logprobs=True, top_logprobs=2)
    parts = [event["choices"][0]["logprobs"] for event in streamed]
    assert [entry for part in parts if part for entry in part["content"]] == whole
    assert post(client).json()["choices"][0]["logprobs"] is None


def test_the_seed_that_was_used_replays_the_reply(client: TestClient) -> None:
    first = client.post(CHAT, json={"messages": HI, "max_tokens": 8}).json()
    again = post(client, seed=first["seed"]).json()
    assert again["choices"] == first["choices"]


def test_stop_strings_end_the_text_before_them(client: TestClient) -> None:
    text = post(client, max_tokens=40, temperature=0).json()["choices"][0]["message"]["content"]
    stop = text[5:7]
    events = chunks(client, max_tokens=40, temperature=0, stop=stop)
    assert text_of(events) == text[: text.index(stop)]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


def test_a_limit_over_the_window_ends_with_length(client: TestClient) -> None:
    body = post(client, max_tokens=10**9, temperature=0, logit_bias={"2": -100}).json()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["total_tokens"] <= 256


def test_prefill_only_warms_the_cache(client: TestClient) -> None:
    messages = [{"role": "user", "content": "a prompt of its own, long enough to fill blocks: " + "abc " * 20}]
    body = post(client, messages=messages, prefill_only=True, n=4).json()
    assert body["choices"] == []
    assert body["usage"]["completion_tokens"] == 0
    assert body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"] > 60
    warm = post(client, messages=messages).json()["usage"]
    assert warm["prompt_tokens_details"]["cached_tokens"] >= warm["prompt_tokens"] - 17
    (only,) = chunks(client, messages=messages, prefill_only=True)
    assert only["choices"] == []
    assert only["usage"]["completion_tokens"] == 0


def test_silence_is_filled_with_comments(service: Service) -> None:
    with client_of(service, Settings(ping_interval_s=0.0)) as client:
        # Many tokens: a busy machine may hold the event loop back until some of them wait for it.
        answer = post(client, stream=True, max_tokens=150, logit_bias={"2": -100})
    lines = [event for event in answer.text.split("\n\n") if event]
    assert ": ping" in lines
    assert all(line == ": ping" or line.startswith("data: ") for line in lines)
    assert lines[-1] == "data: [DONE]"


def test_accept_never_chooses_the_format(client: TestClient) -> None:
    headers = {"accept": "application/json", "accept-encoding": "gzip"}
    answer = client.post(CHAT, json={"messages": HI, "max_tokens": 2, "stream": True}, headers=headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "content-encoding" not in answer.headers


# What a client can get wrong; every refusal comes before the first byte of an answer


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
        ({"response_format": {"type": "json_object"}}, 400, "unsupported", "response_format"),
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
        wait_until(lambda: is_idle(service))
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


# Clients that leave


def raw_request(port: int, stream: bool, **body: Any) -> socket.socket:
    content = json.dumps({"messages": HI, "stream": stream, "logit_bias": {"2": -100}, **body}).encode()
    connection = socket.create_connection(("127.0.0.1", port))
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    connection.sendall(f"{head}\r\n\r\n".encode() + content)
    return connection


def drop(connection: socket.socket, reset: bool = False) -> None:
    if reset:  # close with a reset instead of a goodbye
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("stream", [False, True])
def test_leaving_frees_the_engine(tmp_path: Any, stream: bool) -> None:
    """Long before the reply would have ended by itself; without streaming nothing was ever sent."""
    with running_service(tmp_path, context_length=4096) as service, live_server(service) as live:
        connection = raw_request(live.port, stream)
        wait_until(lambda: service.loop.stats().generated_tokens >= 2)
        drop(connection)
        wait_until(lambda: is_idle(service))
        assert service.loop.stats().generated_tokens < 3000


def test_leaving_during_a_long_prefill(tmp_path: Any) -> None:
    with running_service(tmp_path, context_length=8192, step_budget=16) as service, live_server(service) as live:
        connection = raw_request(live.port, True, messages=[{"role": "user", "content": "z" * 8000}])
        wait_until(lambda: service.loop.stats().running == 1)
        drop(connection)
        wait_until(lambda: is_idle(service))
        assert service.loop.stats().generated_tokens == 0


def test_a_reader_that_never_reads_is_dropped(tmp_path: Any) -> None:
    with (
        running_service(tmp_path, context_length=8192) as service,
        live_server(service, Settings(client_patience_s=0.3), small_buffers=True) as live,
    ):
        connection = raw_request(live.port, True, logprobs=True, top_logprobs=20)
        wait_until(lambda: service.loop.stats().generated_tokens >= 20)
        wait_until(lambda: is_idle(service))
        assert service.loop.stats().generated_tokens < 7000
        wait_until(lambda: live.context.drain.busy == 0)
        connection.close()


# Shutdown


@pytest.mark.parametrize("stream", [False, True])
def test_a_reply_that_outlasts_the_drain_is_told_so(
    tmp_path: Any, stream: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        running_service(tmp_path, context_length=8192) as service,
        live_server(service, Settings(drain_s=0.1)) as live,
        raw_request(live.port, stream) as connection,
    ):
        wait_until(lambda: service.loop.stats().generated_tokens >= 2)
        live.stop()
        answer = everything(connection)
        live.join()
        wait_until(lambda: is_idle(service))
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200" if stream else "HTTP/1.1 503")
    assert '"code":"aborted"' in body
    assert ("data: [DONE]" in body) == stream
    assert capfd.readouterr().err == ""


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


def everything(connection: socket.socket, end: bytes | None = None) -> str:
    """What the server sends until it closes, or until `end`."""
    connection.settimeout(30)
    data = b""
    while (end is None or end not in data) and (part := connection.recv(65536)):
        data += part
    return data.decode()
