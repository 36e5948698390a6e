"""What a request asks for, read from its fields."""

from __future__ import annotations

from typing import Any

import pytest
from realtime_session import LIMITS

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.fields import Fields
from paceline.server.parameters import Parameters
from paceline.server.responses.items import Message
from paceline.server.responses.request import ResponseRequest, read_request
from paceline.server.tool_use import ToolUse


def read(base: Parameters | None = None, **fields: Any) -> ResponseRequest:
    return read_request(
        Fields({"input": "hi", **fields}), LIMITS, base or Parameters(), find=lambda _: None, max_items=3
    )


def test_what_is_left_out() -> None:
    request = read()
    assert (request.store, request.stream, request.generate, request.truncate) == (True, False, True, False)
    assert (request.model, request.previous_response_id, request.instructions) == (None, None, "")
    assert request.parameters == Parameters(tools=ToolUse(strict_unless_said=True))
    assert request == read(**dict.fromkeys(("store", "stream", "generate", "truncation", "model", "tools", "text")))
    assert request == read(unknown={"x": 1}, stream_options={"include_obfuscation": True})


def test_what_is_asked_for() -> None:
    request = read(
        Parameters(priority="interactive"),
        model="m",
        store=False,
        stream=True,
        max_output_tokens=5,
        temperature=0.5,
        top_p=0.9,
        seed=7,
        stop=["x"],
        speculation={"mode": "none"},
        reasoning={"effort": "low"},
        truncation="auto",
    )
    parameters = request.parameters
    assert (request.model, request.store, request.stream, request.truncate) == ("m", False, True, True)
    assert (parameters.max_tokens, parameters.seed, parameters.stop) == (5, 7, ("x",))
    assert (parameters.sampling.temperature, parameters.sampling.top_p) == (0.5, 0.9)
    assert (parameters.speculation.mode, parameters.priority) == ("none", "interactive")
    assert request.echo["reasoning"]["effort"] == "low"
    assert read(priority="background").parameters.priority == "background"


def test_tools_are_repeated_as_they_were_understood() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [
        {"type": "function", "name": "look", "description": "Looks.", "parameters": schema, "strict": True},
        {"type": "function", "name": "wait"},
    ]
    request = read(tools=tools, tool_choice={"type": "function", "name": "wait"}, parallel_tool_calls=False)
    use = request.parameters.tools
    assert ([tool.name for tool in use.tools], use.choice, use.only) == (["look", "wait"], "named", "wait")
    assert request.echo["tools"][0] == tools[0]
    assert (request.echo["tools"][1]["parameters"], request.echo["tools"][1]["strict"]) == (None, None)
    assert use.held
    assert read(tools=tools[1:]).parameters.tools.held
    assert not read(tools=[{**tools[1], "strict": False}]).parameters.tools.held
    assert request.echo["tool_choice"] == {"type": "function", "name": "wait"}
    assert request.echo["parallel_tool_calls"] is False
    assert read(tools=tools, tool_choice="required").echo["tool_choice"] == "required"
    with pytest.raises(ApiError) as other:
        read(tools=[{"type": "web_search"}])
    assert (other.value.param, other.value.code) == ("tools[0].type", "unsupported")


def test_logprobs_are_asked_for_in_two_ways() -> None:
    assert read().parameters.sampling.logprobs is None
    assert read(top_logprobs=0).parameters.sampling.logprobs is None
    assert read(top_logprobs=3).parameters.sampling.logprobs == 3
    assert read(include=["message.output_text.logprobs"]).parameters.sampling.logprobs == 0
    assert read(include=["file_search_call.results"]).parameters.sampling.logprobs is None


def test_nothing_to_say_is_a_mistake_unless_something_was_said() -> None:
    for enough in ({"instructions": "Say hi."}, {"previous_response_id": "resp_1"}):
        assert read(input=None, **enough).items == ()
    for nothing in (None, []):
        with pytest.raises(RequestError, match="input is missing"):
            read(input=nothing)
    with pytest.raises(RequestError, match="at most 3 items"):
        read(input=[{"role": "user", "content": "x"}] * 4)


def test_what_cannot_be_honoured_is_refused() -> None:
    for key, value in {"background": True, "conversation": {"id": "c"}, "prompt": {"id": "p"}}.items():
        with pytest.raises(ApiError) as refused:
            read(**{key: value})
        assert (refused.value.param, refused.value.code) == (key, "unsupported")


def test_what_follows_keeps_the_settings() -> None:
    request = read(temperature=0.5, max_output_tokens=4, metadata={"a": "b"})
    more = (Message("", "user", "more"),)
    following = request.following("resp_1", more)
    assert (following.items, following.previous_response_id) == (more, "resp_1")
    assert following.parameters == request.parameters
    assert following.echo == request.echo | {"previous_response_id": "resp_1"}


def test_the_form_of_the_text() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "name": "thing", "schema": schema, "strict": True}
    request = read(text={"format": form, "verbosity": "low"})
    assert request.parameters.format.kind == "json_schema"
    assert request.echo["text"] == {"format": form, "verbosity": "low"}
    assert read(text={"format": None}).echo["text"] == {"format": {"type": "text"}}
    with pytest.raises(RequestError) as refused:
        read(text={"format": {"type": "poem"}})
    assert refused.value.param == "text.format.type"
