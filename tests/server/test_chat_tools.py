"""Thoughts, words and tool calls over HTTP: chunks, bodies and what the stock SDK makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import openai
import pytest
from chat_completions import HI, choice_of, chunks, post
from part_readers import RUN, EveryKind
from service import ENDLESS, LiveServer
from starlette.testclient import TestClient

from paceline.server.caller import Caller
from paceline.server.parameters import Parameters
from paceline.server.prepared import Prepared
from paceline.server.service import Service
from paceline.server.tool_use import NO_TOOLS

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
REPEATED = [{"role": "user", "content": "the cat sat on the mat; " * 6}]


@pytest.fixture(autouse=True)
def every_kind(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny model's text is read as parts of every kind, and its prompt, which has no room for tools, goes without
    them; all the rest is as it is served."""
    prepare = service.prepare

    async def prepared(messages: Any, parameters: Parameters, caller: Caller) -> Prepared:
        return replace(await prepare(messages, replace(parameters, tools=NO_TOOLS)), reader=EveryKind)

    monkeypatch.setattr(service, "prepare", prepared)


@pytest.fixture
def sdk(live: LiveServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused", max_retries=0) as sdk:
        yield sdk


def stop_after_a_call(client: TestClient) -> str:
    """A stop string that ends the seeded reply right behind its first call."""
    message = post(client, max_tokens=60, **ENDLESS).json()["choices"][0]["message"]
    text = message["reasoning_content"][:RUN] + message["content"][:RUN]
    text += "".join(call["function"]["arguments"] for call in message["tool_calls"][:2])
    end = 3 * RUN
    return next(text[end : end + size] for size in range(1, RUN) if text.find(text[end : end + size]) == end)


REQUESTS: list[dict[str, Any]] = [
    {"max_tokens": 40},
    {"max_tokens": 40, "temperature": 0, "messages": REPEATED},
    {"max_tokens": 40, "n": 3, "tools": TOOLS},
    {"max_tokens": 40, "n": 2, "stop": ["e", "th", "\n"]},
    {"max_tokens": 24, "logprobs": True, "top_logprobs": 2, "messages": REPEATED, "temperature": 0},
    {"max_tokens": 17, "frequency_penalty": 0.5, "presence_penalty": 0.2, "logit_bias": {"50": 5}},
    {"max_completion_tokens": 1},
]


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
def test_bodies_and_streams_agree_with_speculation_and_without(client: TestClient, asked: dict[str, Any]) -> None:
    plain = post(client, **asked, speculation={"mode": "none"}).json()
    for mode in ("none", "suffix"):
        more = {"speculation": {"mode": mode, "telemetry": True}, "stream_options": {"include_usage": True}}
        body, events = post(client, **asked, **more).json(), chunks(client, **asked, **more)
        choices = [choice_of(events, index) for index in range(asked.get("n", 1))]
        assert choices == body["choices"]
        assert [rounded(choice) for choice in choices] == [rounded(choice) for choice in plain["choices"]]
        for key in ("prompt_tokens", "completion_tokens", "total_tokens", "completion_tokens_details"):
            assert events[-1]["usage"][key] == body["usage"][key] == plain["usage"][key]
        emitted = sum(event["x_spec"]["emitted"] for event in events if "x_spec" in event)
        assert emitted == plain["usage"]["completion_tokens"]


def rounded(choice: dict[str, Any]) -> dict[str, Any]:
    """Without the last bits of logprobs, which may follow the size of a step on some machines."""
    entries = (choice["logprobs"] or {"content": []})["content"]
    return {**choice, "logprobs": [(entry["bytes"], round(entry["logprob"], 2)) for entry in entries]}


def test_parallel_calls_have_indices_of_their_own(client: TestClient) -> None:
    events = chunks(client, max_tokens=60, **ENDLESS)
    fragments = [call for event in events for call in event["choices"][0]["delta"].get("tool_calls", [])]
    begun = [call for call in fragments if "id" in call]
    assert [call["index"] for call in begun] == list(range(len(begun)))
    assert len(begun) >= 2
    assert [call["index"] for call in fragments] == sorted(call["index"] for call in fragments)
    for call in begun:
        assert call["type"] == "function"
        assert call["function"] == {"name": "look_up", "arguments": ""}


def test_a_reply_that_begins_with_a_thought_has_no_words_yet(client: TestClient) -> None:
    first, second, *_ = chunks(client)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": None}
    assert set(second["choices"][0]["delta"]) == {"reasoning_content"}


def test_calls_that_are_cut_off_end_with_length(client: TestClient) -> None:
    for n in (1, 2):
        body = post(client, max_tokens=40, n=n, **ENDLESS).json()
        assert [choice["finish_reason"] for choice in body["choices"]] == ["length"] * n
        assert all(choice["message"]["tool_calls"] for choice in body["choices"])


def test_sdk_reads_calls(sdk: openai.OpenAI, client: TestClient) -> None:
    asked: dict[str, Any] = {"model": "default", "messages": HI, "seed": 1, "tools": TOOLS, "max_tokens": 60}
    asked |= {"stop": stop_after_a_call(client), "extra_body": ENDLESS}
    whole = sdk.chat.completions.create(**asked).choices[0]
    assert whole.finish_reason == "tool_calls"
    assert whole.message.tool_calls is not None
    (call,) = whole.message.tool_calls
    assert call.type == "function"
    assert call.function.name == "look_up"
    with sdk.chat.completions.stream(**asked) as stream:
        events = list(stream)
        final = stream.get_final_completion().choices[0]
    assert final.finish_reason == "tool_calls"
    assert final.message.content == whole.message.content
    assert final.message.tool_calls is not None
    (streamed,) = final.message.tool_calls
    assert (streamed.id, streamed.function.name) == (call.id, "look_up")
    assert streamed.function.arguments == call.function.arguments
    deltas = [event.arguments_delta for event in events if event.type == "tool_calls.function.arguments.delta"]
    assert "".join(deltas) == call.function.arguments
    assert [event.arguments for event in events if event.type == "tool_calls.function.arguments.done"] == [
        call.function.arguments
    ]
