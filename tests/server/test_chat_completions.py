"""Chat completions as clients see them: the stock SDK, raw bytes, and what a reply holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from chat_completions import CHAT, HI, chunks, post, text_of
from service import MODEL_ID, LiveServer, live_server, wait_until_idle
from starlette.testclient import TestClient

from paceline.server.context import Settings
from paceline.server.service import Service


@pytest.fixture
def sdk(live: LiveServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused", max_retries=0) as sdk:
        yield sdk


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
    wait_until_idle(service)


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
        plain, spec = (post(client, **asked, speculation={"mode": mode}).json() for mode in ("none", "suffix"))
        (one,), (other,) = spec["choices"], plain["choices"]
        assert one["message"] == other["message"]
        assert one["finish_reason"] == other["finish_reason"]
        logprobs, expected = (choice["logprobs"]["content"] for choice in (one, other))
        assert [entry["bytes"] for entry in logprobs] == [entry["bytes"] for entry in expected]
        assert [e["logprob"] for e in logprobs] == pytest.approx([e["logprob"] for e in expected], abs=1e-3)
        assert spec["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
        assert plain["metrics"]["speculative_decoding"]["num_draft_tokens"] == 0
        assert temperature or spec["metrics"]["speculative_decoding"]["num_draft_tokens"] > 0
        streamed = chunks(client, **asked, speculation={"mode": "suffix", "telemetry": True})
        assert text_of(streamed) == plain["choices"][0]["message"]["content"]
        emitted = sum(event.get("x_spec", {}).get("emitted", 0) for event in streamed)
        assert emitted == plain["usage"]["completion_tokens"]


def test_a_prediction_that_comes_true_is_counted_and_changes_nothing(client: TestClient) -> None:
    plain = post(client, max_tokens=24).json()
    text = plain["choices"][0]["message"]["content"]
    for content in (text, [{"type": "text", "text": text}], "nothing of the kind"):
        guessed = post(client, max_tokens=24, prediction={"type": "content", "content": content}).json()
        assert guessed["choices"] == plain["choices"]
        details = guessed["usage"]["completion_tokens_details"]
        assert details["accepted_prediction_tokens"] + details["rejected_prediction_tokens"] > 0
        assert (details["accepted_prediction_tokens"] > 0) == (content != "nothing of the kind")
    assert plain["usage"]["completion_tokens_details"]["rejected_prediction_tokens"] == 0


def test_replies_are_reused_under_a_key_without_a_change(client: TestClient) -> None:
    speculation = {"mode": "suffix", "reuse_key": "project"}
    first, again = (post(client, max_tokens=24, speculation=speculation).json() for _ in range(2))
    assert first["choices"] == again["choices"]


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
