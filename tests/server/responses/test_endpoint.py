"""Responses over HTTP as clients see them: raw bytes, storage, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import chat_completions
import openai
import pytest
from openai.types.responses import Response
from responses_api import REPLY, RESPONSES, order_of, output_text, post, streamed
from service import ENDLESS, client_of, running_server, wait_for_tokens, wait_until_idle
from starlette.testclient import TestClient

from paceline.server.context import Settings
from paceline.server.service import Service

# Streams and bodies

ASKED: list[dict[str, Any]] = [
    {},
    {"temperature": 0, "speculation": {"mode": "none"}},
    {"temperature": 0, "speculation": {"mode": "suffix", "telemetry": True}},
    {"max_output_tokens": 40, "stop": ["a"], "frequency_penalty": 1},
    {"top_logprobs": 2},
    {"include": ["message.output_text.logprobs"], "instructions": "Be brief."},
    {"metadata": {"a": "b"}, "user": "me", "service_tier": "flex", "unknown": 1, "temperature": None},
    {
        "input": [
            {"role": "developer", "content": "x"},
            {"role": "user", "content": [{"type": "input_text", "text": "y"}]},
        ]
    },
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_the_body_is_the_last_event(client: TestClient, asked: dict[str, Any]) -> None:
    events = streamed(client, **asked)
    body = post(client, **asked).json()
    Response.model_validate(body, strict=True)
    last = events[-1]["response"]

    def bare(value: Any) -> Any:
        """Without ids, times, figures, and whether the prompt was in the cache."""
        if isinstance(value, list):
            return [bare(entry) for entry in value]
        if isinstance(value, dict):
            unlike = ("id", "created_at", "completed_at", "metrics", "input_tokens_details")
            return {key: bare(entry) for key, entry in value.items() if key not in unlike}
        return value

    assert bare(body) == bare(last)
    assert body["status"] in ("completed", "incomplete")
    assert order_of(events)[:-1] == REPLY[:-1]


def test_text_finish_and_usage_equal_chats(client: TestClient) -> None:
    talk = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": "more"},
    ]
    chat = chat_completions.post(client, messages=talk, temperature=0.7, seed=9, max_tokens=20).json()
    first, *rest = talk
    mine = post(client, input=rest, instructions=first["content"], temperature=0.7, seed=9, max_output_tokens=20).json()
    assert output_text(mine) == chat["choices"][0]["message"]["content"]
    finish = {"stop": "completed", "length": "incomplete"}[chat["choices"][0]["finish_reason"]]
    assert mine["status"] == finish
    usage = chat["usage"]
    assert [mine["usage"][key] for key in ("input_tokens", "output_tokens", "total_tokens")] == [
        usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")
    ]
    assert mine["seed"] == chat["seed"] == 9


def test_logprobs_are_chats(client: TestClient) -> None:
    chat = chat_completions.post(client, messages=[{"role": "user", "content": "hi"}], logprobs=True, top_logprobs=3)
    events = streamed(client, input="hi", top_logprobs=3)
    (message,) = events[-1]["response"]["output"]
    assert message["content"][0]["logprobs"] == chat.json()["choices"][0]["logprobs"]["content"]
    deltas = [entry for event in events if event["type"] == "response.output_text.delta" for entry in event["logprobs"]]
    assert deltas == message["content"][0]["logprobs"]


def test_telemetry_adds_up(client: TestClient) -> None:
    events = streamed(client, speculation={"telemetry": True}, **ENDLESS)
    emitted = sum(event["x_spec"]["emitted"] for event in events if "x_spec" in event)
    assert emitted == events[-1]["response"]["usage"]["output_tokens"]


def test_generate_false_prefills_and_says_nothing(client: TestClient) -> None:
    asked = {"input": "a rather long question, longer than a block of the cache is", "instructions": "Be exact."}
    events = streamed(client, generate=False, **asked)
    last = events[-1]["response"]
    assert order_of(events) == ["response.created", "response.in_progress", "response.completed"]
    assert (last["output"], last["usage"]["output_tokens"]) == ([], 0)
    answer = post(client, input=None, instructions="Be exact.", previous_response_id=last["id"]).json()
    assert answer["usage"]["input_tokens"] == last["usage"]["input_tokens"]
    assert answer["usage"]["input_tokens_details"]["cached_tokens"] >= last["usage"]["input_tokens"] // 16 * 16 - 16


def test_auto_truncation_drops_the_oldest_turns(client: TestClient) -> None:
    turns: list[dict[str, str]] = []
    for number in range(12):
        turns += [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": "yes " * 10}]
    turns.append({"role": "user", "content": "the last one"})
    assert post(client, input=turns).json()["error"]["code"] == "context_length_exceeded"
    short = post(client, input=turns, truncation="auto").json()
    fits = [post(client, input=turns[start:]).status_code for start in range(0, len(turns), 2)]
    kept = turns[2 * fits.index(200) :]
    assert short["usage"]["input_tokens"] == post(client, input=kept).json()["usage"]["input_tokens"]
    refused = post(client, input="z" * 5000, truncation="auto")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "context_length_exceeded")


# Storage


def test_what_is_not_stored_is_not_there(client: TestClient) -> None:
    hidden = post(client, store=False).json()
    assert hidden["store"] is False
    assert client.get(f"{RESPONSES}/{hidden['id']}").status_code == 404
    kept = post(client).json()
    assert client.get(f"{RESPONSES}/{kept['id']}").json() == kept


def test_others_see_nothing_of_it(service: Service) -> None:
    with client_of(service, Settings(api_keys=("one", "two"))) as client:
        mine, theirs = ({"authorization": f"Bearer {key}"} for key in ("one", "two"))
        kept = client.post(RESPONSES, json={"input": "hi", "max_output_tokens": 2}, headers=mine).json()
        address = f"{RESPONSES}/{kept['id']}"
        assert client.get(address).status_code == 401
        for answer in (
            client.get(address, headers=theirs),
            client.delete(address, headers=theirs),
            client.post(f"{address}/cancel", headers=theirs),
            client.post(RESPONSES, json={"input": "a", "previous_response_id": kept["id"]}, headers=theirs),
            client.post(
                RESPONSES, json={"input": [{"type": "item_reference", "id": kept["output"][0]["id"]}]}, headers=theirs
            ),
        ):
            assert answer.status_code in (400, 404)
            assert "not_found" in str(answer.json()["error"]["code"]) or "item" in answer.json()["error"]["message"]
        assert client.get(address, headers=mine).json() == kept


def test_a_reference_stands_for_what_the_model_wrote(client: TestClient) -> None:
    first = post(client).json()
    (message,) = first["output"]
    head = {"role": "user", "content": "hi there"}
    tail = {"role": "user", "content": "more"}
    named = post(client, input=[head, {"type": "item_reference", "id": message["id"]}, tail]).json()
    spelled = post(client, input=[head, message, tail]).json()
    assert named["usage"]["input_tokens"] == spelled["usage"]["input_tokens"]
    assert output_text(named) == output_text(spelled)


def test_cancel_ends_a_running_response(tmp_path: Any) -> None:
    with (
        running_server(tmp_path, context_length=4096) as live,
        openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused", max_retries=0) as sdk,
    ):
        stream = sdk.responses.create(model="default", input="hi", stream=True, extra_body=ENDLESS)
        first = next(iter(stream))
        assert first.type == "response.created"
        assert sdk.responses.retrieve(first.response.id).status == "in_progress"
        wait_for_tokens(live.service, 3)
        cancelled = sdk.responses.cancel(first.response.id)
        events = list(stream)
        wait_until_idle(live.service)
        assert live.service.loop.stats().generated_tokens < 3000
        assert cancelled.status == "cancelled"
        assert events[-1].type == "response.incomplete"
        assert events[-1].response == cancelled
        assert sdk.responses.retrieve(first.response.id) == cancelled
        with pytest.raises(openai.ConflictError) as late:
            sdk.responses.cancel(first.response.id)
        assert late.value.code == "response_cancel_not_active"


# What is refused

BAD: list[tuple[dict[str, Any], str, str | None]] = [
    ({"input": None}, "input", None),
    ({"input": 5}, "input", None),
    ({"input": [7]}, "input[0]", None),
    ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role", None),
    ({"input": [{"content": "x"}]}, "input[0].role", None),
    ({"input": [{"role": "user"}]}, "input[0].content", None),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].type", "unsupported"),
    ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text", None),
    ({"input": [{"type": "web_search_call", "id": "x"}]}, "input[0].type", "unsupported"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].id", None),
    ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id", None),
    ({"input": [{"type": "function_call", "call_id": "c"}]}, "input[0].name", None),
    ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output", None),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input[0].call_id", None),
    ({"previous_response_id": "resp_x"}, "previous_response_id", "previous_response_not_found"),
    ({"background": True}, "background", "unsupported"),
    ({"conversation": "conv_1"}, "conversation", "unsupported"),
    ({"prompt": {"id": "p"}}, "prompt", "unsupported"),
    ({"max_output_tokens": 0}, "max_output_tokens", None),
    ({"max_output_tokens": "many"}, "max_output_tokens", None),
    ({"temperature": "hot"}, "temperature", None),
    ({"top_logprobs": 21}, "top_logprobs", None),
    ({"truncation": "some"}, "truncation", None),
    ({"reasoning": {"effort": "utmost"}}, "reasoning.effort", None),
    ({"metadata": {"a": 1}}, "metadata", None),
    ({"store": "yes"}, "store", None),
    ({"stream": 1}, "stream", None),
    ({"include": "everything"}, "include", None),
    ({"tools": [{"type": "function"}]}, "tools[0].name", None),
    ({"tools": [{"type": "file_search"}]}, "tools[0].type", "unsupported"),
    ({"tool_choice": "required"}, "tool_choice", None),
    ({"parallel_tool_calls": 1}, "parallel_tool_calls", None),
    ({"text": {"format": 1}}, "text.format", None),
    ({"instructions": ["x"]}, "instructions", None),
    ({"speculation": {"mode": "magic"}}, "speculation.mode", "unknown_speculator"),
]


@pytest.mark.parametrize(("asked", "param", "code"), BAD, ids=str)
def test_mistakes_are_said_in_one_sentence(
    client: TestClient, asked: dict[str, Any], param: str, code: str | None
) -> None:
    answer = post(client, **asked)
    error = answer.json()["error"]
    assert answer.status_code in (400, 404), error
    assert (error["param"], error["code"]) == (param, code)
    assert error["message"].endswith(".")


def test_a_get_is_told_how_to_come(client: TestClient) -> None:
    assert client.get(RESPONSES).status_code in (405, 426)


# Forms

THING = {"type": "object", "properties": {"up": {"type": "boolean"}}, "required": ["up"], "additionalProperties": False}


def test_a_text_of_a_form(client: TestClient) -> None:
    form = {"type": "json_schema", "name": "thing", "schema": THING, "strict": True}
    events = streamed(client, text={"format": form}, max_output_tokens=60)
    assert set(json.loads(output_text(events[-1]["response"]))) == {"up"}
    chat = chat_completions.post(
        client,
        messages=[{"role": "user", "content": "hi there"}],
        response_format={"type": "json_schema", "json_schema": {"name": "thing", "schema": THING, "strict": True}},
        max_tokens=60,
    ).json()
    assert chat["choices"][0]["message"]["content"] == output_text(events[-1]["response"])
    broken = post(client, text={"format": {**form, "schema": {"type": "nothing"}}}).json()["error"]
    assert broken["code"] == "invalid_grammar"
    assert broken["param"].startswith("text.format")
