"""What the stock SDK makes of calls and forms it asked for, from a model that writes nothing sensible by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import openai
import pytest
from chat_completions import HI, choice_of, chunks, post
from pydantic import BaseModel
from service import client_of, live_server, running_service
from starlette.testclient import TestClient

from paceline.server.service import Service


class LookUp(BaseModel):
    """Looks a word up."""

    language: Literal["cs", "en"]
    deep: bool


TOOLS: list[Any] = [openai.pydantic_function_tool(LookUp)]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(tmp_path_factory.mktemp("parse"), context_length=1536) as service:
        yield service


@pytest.fixture(scope="module")
def sdk(service: Service) -> Iterator[openai.OpenAI]:
    with (
        live_server(service) as live,
        openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused", max_retries=0) as sdk,
    ):
        yield sdk


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "LookUp"}}], ids=["required", "named"]
)
def test_calls(sdk: openai.OpenAI, choice: Any) -> None:
    asked: dict[str, Any] = {"model": "default", "messages": HI, "tools": TOOLS, "tool_choice": choice, "seed": 1}
    asked |= {"parallel_tool_calls": False, "max_tokens": 200}
    whole = sdk.chat.completions.parse(**asked).choices[0]
    assert (whole.finish_reason, whole.message.content) == ("tool_calls", None)
    assert whole.message.tool_calls is not None
    (call,) = whole.message.tool_calls
    assert isinstance(call.function.parsed_arguments, LookUp)
    with sdk.chat.completions.stream(**asked) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion().choices[0]
    assert final.message.tool_calls is not None
    (streamed,) = final.message.tool_calls
    assert streamed.id == call.id
    assert streamed.function.parsed_arguments == call.function.parsed_arguments


def test_forms(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "default", "messages": HI, "response_format": LookUp, "n": 2, "max_tokens": 200}
    whole = sdk.chat.completions.parse(**asked, seed=1)
    assert all(isinstance(choice.message.parsed, LookUp) for choice in whole.choices)
    with sdk.chat.completions.stream(**asked, seed=1) as stream:
        final = stream.until_done().get_final_completion()
    assert [choice.message.parsed for choice in final.choices] == [choice.message.parsed for choice in whole.choices]


def test_calls_and_their_answers_go_back_into_the_conversation(sdk: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "default", "tools": TOOLS, "max_tokens": 120, "seed": 1}
    first = sdk.chat.completions.create(messages=HI, tool_choice="required", **asked).choices[0].message
    assert first.tool_calls
    answers = [{"role": "tool", "tool_call_id": call.id, "content": "a word"} for call in first.tool_calls]
    messages: list[Any] = [*HI, first, *answers]
    assert sdk.chat.completions.create(messages=messages, **asked).choices[0].finish_reason


REQUESTS: list[dict[str, Any]] = [
    {"tools": TOOLS, "tool_choice": "required"},
    {"tools": TOOLS, "tool_choice": "required", "n": 2, "temperature": 0.7, "logprobs": True},
    {"tools": TOOLS, "tool_choice": "required", "max_tokens": 40},
    {"tools": TOOLS, "max_tokens": 30},
    {"response_format": {"type": "json_object"}, "max_tokens": 40},
    {"response_format": {"type": "regex", "regex": "(ab|cd){5,9}"}, "temperature": 0},
]


@pytest.mark.parametrize("asked", REQUESTS, ids=["called", "several", "cut off", "free", "object", "regex"])
def test_bodies_and_streams_agree_with_speculation_and_without(service: Service, asked: dict[str, Any]) -> None:
    with client_of(service) as client:
        asked = {"max_tokens": 120, **asked}
        plain = whole(client, {**asked, "speculation": {"mode": "none"}})
        for mode in ("none", "suffix"):
            assert whole(client, {**asked, "speculation": {"mode": mode}}) == plain
            events = chunks(client, **asked, speculation={"mode": mode})
            assert [told(choice_of(events, index)) for index in range(asked.get("n", 1))] == plain


def whole(client: TestClient, asked: dict[str, Any]) -> list[Any]:
    return [told(choice) for choice in post(client, **asked).json()["choices"]]


def told(choice: dict[str, Any]) -> tuple[Any, ...]:
    entries = (choice["logprobs"] or {"content": []})["content"]
    return choice["message"], choice["finish_reason"], [entry["bytes"] for entry in entries]


def test_a_text_completion_has_the_form_that_is_asked_for(service: Service) -> None:
    with client_of(service) as client:
        body = {"prompt": ["a", "b"], "response_format": {"type": "regex", "regex": "[xyz]{3}"}}
        choices = client.post("/v1/completions", json=body).json()["choices"]
    assert all(len(choice["text"]) == 3 and set(choice["text"]) <= set("xyz") for choice in choices)
