from __future__ import annotations

from typing import Any

import orjson
import pytest

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.chat_request import ChatRequest, parse_chat_request
from paceline.server.parameters import Limits
from paceline.server.stream_options import StreamOptions

LIMITS = Limits(vocab_size=100, speculators=("auto", "none"))
USER = {"role": "user", "content": "hi"}


def parse(**body: Any) -> ChatRequest:
    data = orjson.dumps({"messages": [USER], **body})
    return parse_chat_request(data, LIMITS, max_choices=4, max_messages=10)


def test_defaults() -> None:
    asked = parse()
    assert (asked.n, asked.delivery, asked.prefill_only) == (1, StreamOptions(), False)
    assert asked.parameters.sampling.temperature == 1.0
    assert asked.parameters.max_tokens is None
    assert asked.model is None


def test_nulls_are_absent_and_extras_are_ignored() -> None:
    names = "model n stream stream_options max_tokens max_completion_tokens stop seed temperature tools tool_choice"
    more = "response_format prediction logprobs top_logprobs logit_bias speculation prefill_only parallel_tool_calls"
    more += " audio function_call modalities"
    extras = {"user": "me", "store": True, "service_tier": "auto", "metadata": {"a": 1}, "x-unknown": [1]}
    extras |= {"safety_identifier": "x", "prompt_cache_key": "y", "verbosity": "low", "functions": []}
    assert parse(**dict.fromkeys(f"{names} {more}".split()), **extras) == parse()


def test_the_newer_name_of_the_token_limit_wins() -> None:
    assert parse(max_tokens=5).parameters.max_tokens == 5
    assert parse(max_completion_tokens=6).parameters.max_tokens == 6
    assert parse(max_tokens=5, max_completion_tokens=6).parameters.max_tokens == 6


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [USER] * 11}, "messages"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role"),
        ({"messages": [{"role": "robot", "content": "hi"}]}, "messages[0].role"),
        ({"messages": [USER, {"role": "user", "content": 5}]}, "messages[1].content"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"text": "hi"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]}, "messages[0].tool_calls[0].function"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -5}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"n": 0}, "n"),
        ({"n": -1}, "n"),
        ({"n": 5}, "n"),
        ({"n": 1.5}, "n"),
        ({"model": 7}, "model"),
        ({"stream": "yes"}, "stream"),
        ({"stream_options": True}, "stream_options"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
        ({"prefill_only": 1}, "prefill_only"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": {}}, "tools"),
        ({"parallel_tool_calls": 3}, "parallel_tool_calls"),
        ({"response_format": "json"}, "response_format"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {}}, "response_format.type"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.schema"),
    ],
)
def test_bad_bodies_name_the_field(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(**body)
    assert caught.value.param == param
    assert str(caught.value).startswith(param)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]}, "messages[0].function_call"),
        ({"messages": [{"role": "assistant", "audio": {"id": "a"}}]}, "messages[0].audio"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "file"}]}]}, "messages[0].content[0].type"),
        ({"audio": {"voice": "alloy", "format": "wav"}}, "audio"),
        ({"web_search_options": {"search_context_size": "low"}}, "web_search_options"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type"),
    ],
)
def test_what_cannot_be_honoured_is_refused_not_dropped(body: dict[str, Any], param: str) -> None:
    with pytest.raises(ApiError) as caught:
        parse(**body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, "unsupported", param)


def test_older_fields_name_the_newer_ones() -> None:
    for body, newer in (({"functions": [{"name": "f"}]}, "tools"), ({"function_call": "auto"}, "tool_choice")):
        with pytest.raises(ApiError, match=f"older form of {newer}; send that"):
            parse(**body)


def test_a_format_is_one_of_the_parameters() -> None:
    assert parse(response_format={"type": "json_object"}).parameters.format.kind == "json_object"


def test_harmless_forms_of_what_is_unsupported_pass() -> None:
    parse(response_format={"type": "text"}, tools=[], tool_choice="none", modalities=["text"], parallel_tool_calls=True)


def test_messages_become_what_templates_expect() -> None:
    messages = [
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "Ann"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                {"id": "2", "type": "function", "function": {"name": "g", "arguments": '{"x": '}},
            ],
        },
        {"role": "tool", "content": "42", "tool_call_id": "1"},
    ]
    read = parse(messages=messages).messages
    assert read[0] == {"role": "system", "content": "be kind"}
    assert read[1] == {"role": "user", "content": "a\nb", "name": "Ann"}
    assert read[2]["content"] == ""
    assert [call["function"]["arguments"] for call in read[2]["tool_calls"]] == [{"x": 1}, '{"x": ']
    assert read[3]["tool_call_id"] == "1"


def test_an_image_is_refused_by_its_name_and_with_a_way_out() -> None:
    with pytest.raises(ApiError, match=r"^Images are not supported .* 'text'"):
        parse(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])


@pytest.mark.parametrize(
    ("content", "text"),
    [("def f():", "def f():"), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"), ("", "")],
)
def test_a_predicted_output_is_text(content: Any, text: str) -> None:
    assert parse(prediction={"type": "content", "content": content}).prediction == text
    assert parse(prediction=None).prediction == parse().prediction == ""


@pytest.mark.parametrize(
    ("prediction", "param"),
    [
        ("text", "prediction"),
        ({"content": "text"}, "prediction.type"),
        ({"type": "text", "content": "text"}, "prediction.type"),
        ({"type": "content"}, "prediction.content"),
        ({"type": "content", "content": 3}, "prediction.content"),
        ({"type": "content", "content": [{"type": "text", "text": 3}]}, "prediction.content[0].text"),
    ],
)
def test_a_predicted_output_of_another_shape_is_refused(prediction: Any, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse(prediction=prediction)
    assert caught.value.param == param
    assert str(caught.value).endswith(".")
