"""Whatever is posted gets an answer or one clear error, and the server goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from fuzzing import Json, check_at_rest, check_error, parsed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import mutated, texts
from service import LiveServer

BATCH = 8  # messages of one example
AMOUNTS = (320, pytest.param(20_000, marks=pytest.mark.proof))

_TOOL = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
_FLAT_TOOL = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
_SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
_HI = [{"role": "user", "content": "hi"}]
_SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "stop", "seed", "logit_bias", "logprobs", "top_logprobs", "n"),
    *("frequency_penalty", "presence_penalty", "repetition_penalty", "priority", "speculation", "stream", "model"),
    *("response_format", "structured_outputs", "tools", "tool_choice", "parallel_tool_calls", "stream_options"),
    *("reasoning_effort", "metadata", "user", "prefill_only", "prediction", "max_tokens", "modalities", "audio"),
)
_CHAT: list[Json] = [
    {"messages": _HI, "max_tokens": 3},
    {"messages": _HI, "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}},
    {"messages": _HI, "max_completion_tokens": 2, "n": 2, "seed": 1, "temperature": 0.5, "top_p": 0.9, "top_k": 4},
    {"messages": _HI, "max_tokens": 3, "logprobs": True, "top_logprobs": 2, "logit_bias": {"7": 2}, "stop": ["a", "b"]},
    {"messages": _HI, "max_tokens": 3, "frequency_penalty": 0.1, "presence_penalty": 1, "repetition_penalty": 1.1},
    {
        "messages": _HI,
        "max_tokens": 3,
        "speculation": {"mode": "suffix", "max_nodes": 4, "telemetry": True, "trace": True},
    },
    {"messages": _HI, "max_tokens": 3, "prediction": {"type": "content", "content": [{"type": "text", "text": "a"}]}},
    {"messages": _HI, "max_tokens": 9, "response_format": {"type": "json_object"}},
    {"messages": _HI, "max_tokens": 9, "response_format": {"type": "regex", "regex": "[ab]{2,4}"}},
    {
        "messages": _HI,
        "max_tokens": 9,
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": _SCHEMA, "strict": True}},
    },
    {"messages": _HI, "max_tokens": 3, "structured_outputs": {"choice": ["yes", "no"]}},
    {
        "messages": [{"role": "user", "content": "h"}],
        "max_tokens": 3,
        "tools": [{"type": "function", "function": {"name": "f"}}],
    },
    {
        "messages": [{"role": "system", "content": [{"type": "text", "text": "s"}]}, *_HI],
        "max_tokens": 2,
        "priority": "background",
        "prefill_only": True,
    },
    {
        "messages": [
            *_HI,
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "r"},
        ],
        "max_tokens": 2,
    },
]
_RESPONSES: list[Json] = [
    {"input": "hi", "max_output_tokens": 3},
    {"input": "hi", "max_output_tokens": 3, "stream": True, "store": False},
    {"input": _HI, "max_output_tokens": 3, "instructions": "be", "metadata": {"a": "b"}, "temperature": 0.5},
    {
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]}],
        "max_output_tokens": 2,
    },
    {"input": "hi", "max_output_tokens": 3, "previous_response_id": "resp_nothing"},
    {"input": "hi", "max_output_tokens": 3, "include": ["message.output_text.logprobs"], "top_logprobs": 2},
    {
        "input": "hi",
        "max_output_tokens": 9,
        "text": {"format": {"type": "json_schema", "name": "n", "schema": _SCHEMA}},
    },
    {"input": "hi", "max_output_tokens": 2, "tools": [_FLAT_TOOL], "tool_choice": "auto", "parallel_tool_calls": False},
    {"input": "hi", "max_output_tokens": 2, "truncation": "auto", "reasoning": {"effort": "low"}, "generate": False},
    {
        "input": [
            *_HI,
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "r"},
            {"type": "item_reference", "id": "msg_1"},
        ],
        "max_output_tokens": 2,
    },
]
_COMPLETIONS: list[Json] = [
    {"prompt": "hi", "max_tokens": 3},
    {"prompt": ["a", "b"], "max_tokens": 2, "n": 2, "stream": True},
    {"prompt": [1, 5, 9], "max_tokens": 2, "logprobs": 3, "echo": False, "best_of": 1},
    {"prompt": [[5, 6], [7]], "max_tokens": 2, "stop": "a", "seed": 1, "temperature": 0.1},
]
_TOKENIZE: list[Json] = [
    {"prompt": "hi there", "add_special_tokens": True, "return_token_strs": True},
    {"messages": _HI, "add_generation_prompt": False, "tools": [_TOOL]},
]
_DETOKENIZE: list[Json] = [{"tokens": [1, 2, 100]}, {"tokens": []}]


class Endpoint:
    """messages: texts of bodies. valid: a body that must be answered at any time."""

    def __init__(self, path: str, valid: list[Json], extra: tuple[str, ...] = ()) -> None:
        self.path = path
        self.valid = valid[0]
        self.messages = texts(mutated(valid, extra))


ENDPOINTS: Mapping[str, tuple[Endpoint, ...]] = MappingProxyType(
    {
        "chat": (Endpoint("/v1/chat/completions", _CHAT, _SAMPLING),),
        "responses": (Endpoint("/v1/responses", _RESPONSES, (*_SAMPLING, "previous_response_id", "text", "include")),),
        "texts": (
            Endpoint("/v1/completions", _COMPLETIONS, (*_SAMPLING, "suffix", "echo", "best_of")),
            Endpoint("/tokenize", _TOKENIZE, ("model", "tools", "prompt")),
            Endpoint("/detokenize", _DETOKENIZE),
        ),
    }
)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("name", ENDPOINTS)
def test_any_body_is_answered(live: LiveServer, name: str, amount: int) -> None:
    """Some clients leave after a few lines of the answer."""
    endpoints = ENDPOINTS[name]
    each = st.sampled_from(endpoints).flatmap(
        lambda endpoint: st.tuples(st.just(endpoint), endpoint.messages, st.sampled_from((None, None, None, 0, 2)))
    )

    @settings(max_examples=amount // BATCH, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(each, min_size=BATCH, max_size=BATCH))
    def throw(batch: list[tuple[Endpoint, str, int | None]]) -> None:
        for endpoint, text, leave_after in batch:
            post(client, endpoint.path, text, leave_after)
        for endpoint in endpoints:
            assert client.post(endpoint.path, json=endpoint.valid).status_code == 200
        check_at_rest(live)

    with httpx.Client(base_url=live.url, timeout=300) as client:
        throw()


def post(client: httpx.Client, path: str, text: str, leave_after: int | None) -> None:
    """leave_after: lines of the answer; None: all are read and checked."""
    with client.stream("POST", path, content=text.encode(), headers={"content-type": "application/json"}) as answer:
        assert answer.status_code < 500, (answer.read(), text)
        if answer.status_code != 200:
            answer.read()
            assert 400 <= answer.status_code < 500, text
            check_error(answer.json()["error"], parsed(text))
            return
        lines = []
        for line in answer.iter_lines():
            lines.append(line)
            if leave_after is not None and len(lines) > leave_after:
                return
    if answer.headers["content-type"].startswith("text/event-stream"):
        check_events([line.removeprefix("data: ") for line in lines if line.startswith("data: ")], text)
    else:
        check_body(json.loads("".join(lines)), text)


def check_events(events: list[str], text: str) -> None:
    """The last event is a last one, and none is an error."""
    told = [json.loads(event) for event in events if event != "[DONE]"]
    assert not [event for event in told if event.get("error") or event.get("type") == "error"], text
    if events[-1] != "[DONE]":
        assert told[-1]["type"] in ("response.completed", "response.incomplete"), text


def check_body(body: Any, text: str) -> None:
    assert body.get("status", "completed") in ("completed", "incomplete"), (body, text)
    for choice in body.get("choices", ()):
        assert choice["finish_reason"] in ("stop", "length", "tool_calls"), (body, text)
