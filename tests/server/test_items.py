from __future__ import annotations

from typing import Any

import pytest

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.fields import Fields
from paceline.server.items import FunctionCall, FunctionCallOutput, Item, Message, chat_messages, read_item


def read(**values: Any) -> Item:
    return read_item(Fields(values, "item"), lambda prefix: f"{prefix}_new")


def message(role: str = "user", text: str = "hi", **extra: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}], **extra}


def test_a_message_is_read_and_shown() -> None:
    item = read(**message("user", "hello"))
    assert item.body() == {
        "id": "item_new",
        "object": "realtime.item",
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": "hello"}],
    }
    assert read(**message("assistant", "x")).body()["content"][0]["type"] == "output_text"
    assert read(**message("developer", "x")).body()["role"] == "system"
    assert read(**message(id="mine")).id == "mine"


def test_calls_and_their_outputs_are_read_and_shown() -> None:
    call = read(type="function_call", name="f", arguments='{"a":1}')
    assert call.body() == {
        "id": "item_new",
        "object": "realtime.item",
        "type": "function_call",
        "status": "completed",
        "call_id": "call_new",
        "name": "f",
        "arguments": '{"a":1}',
    }
    output = read(type="function_call_output", id="o", call_id="c", output="")
    assert output.body() == {
        "id": "o",
        "object": "realtime.item",
        "type": "function_call_output",
        "status": "completed",
        "call_id": "c",
        "output": "",
    }
    assert (call.size, output.size) == (8, 0)


@pytest.mark.parametrize(
    ("values", "param"),
    [
        ({"type": "message", "content": []}, "item.role"),
        ({"type": "message", "role": "user"}, "item.content"),
        (message(role="robot"), "item.role"),
        (message(id="x" * 65), "item.id"),
        (message(id=""), "item.id"),
        (message(id=7), "item.id"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "item.content[0].text"),
        ({"type": 5}, "item.type"),
        ({"type": "function_call", "arguments": "{}"}, "item.name"),
        ({"type": "function_call", "name": "f"}, "item.arguments"),
        ({"type": "function_call", "name": "f", "arguments": {}}, "item.arguments"),
        ({"type": "function_call", "name": "f", "arguments": "{}", "call_id": ""}, "item.call_id"),
        ({"type": "function_call", "name": "f", "arguments": "{}", "status": "odd"}, "item.status"),
        ({"type": "function_call_output", "output": "x"}, "item.call_id"),
        ({"type": "function_call_output", "call_id": "c"}, "item.output"),
        ({"type": "function_call_output", "call_id": "c", "output": 5}, "item.output"),
    ],
)
def test_bad_items_name_the_field(values: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(**values)
    assert caught.value.param == param


def test_arguments_are_json_unless_the_call_was_cut_off() -> None:
    with pytest.raises(RequestError, match=r"item\.arguments is not valid JSON"):
        read(type="function_call", name="f", arguments='{"a":')
    cut = read(type="function_call", name="f", arguments='{"a":', status="incomplete")
    assert chat_messages([cut]) == []


@pytest.mark.parametrize(
    "values",
    [
        {"type": "mcp_call", "name": "f"},
        {"type": "item_reference", "id": "x"},
        {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": ""}]},
        {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": ""}]},
    ],
)
def test_other_kinds_are_unsupported(values: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        read(**values)
    assert caught.value.code == "unsupported"


def test_a_turn_with_tools_is_one_message_of_the_assistant() -> None:
    items = [
        Message(id="1", role="user", text="weather?"),
        Message(id="2", role="assistant", text="I look.", thought="hm"),
        FunctionCall(id="3", call_id="a", name="f", arguments='{"x":1}'),
        FunctionCall(id="4", call_id="b", name="g", arguments="{}"),
        FunctionCallOutput(id="5", call_id="a", output="sun"),
        FunctionCall(id="6", call_id="c", name="f", arguments="{}", thought="again"),
    ]
    assert chat_messages(items) == [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
                {"id": "b", "type": "function", "function": {"name": "g", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "sun"},
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "again",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}],
        },
    ]


def test_what_was_cut_off_before_it_began_is_not_repeated_to_the_model() -> None:
    items = [
        Message(id="a", role="user", text="a"),
        Message(id="b", role="assistant", status="incomplete"),
        Message(id="c", role="assistant", text="half", status="incomplete"),
        FunctionCall(id="d", call_id="d", name="f", arguments='{"', status="incomplete"),
    ]
    assert chat_messages(items) == [{"role": "user", "content": "a"}, {"role": "assistant", "content": "half"}]
