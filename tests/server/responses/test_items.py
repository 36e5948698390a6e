"""Items of a conversation, and the messages they are."""

from __future__ import annotations

from typing import Any

from paceline.server.fields import Fields
from paceline.server.responses.items import Call, CallOutput, Item, Message, messages_of, read_input, size_of


def read(value: Any, **known: Item) -> list[Item]:
    return read_input(Fields({"input": value}), known.get, 100)


def test_what_input_may_be() -> None:
    assert read("hi") == [Message("", "user", "hi")]
    assert read(None) == []
    assert read([]) == []
    parts = [{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b", "annotations": []}]
    assert read(
        [
            {"role": "developer", "content": "x"},
            {"type": "message", "id": "m", "role": "user", "content": parts},
            {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": '{"a":1}'},
            {"type": "function_call_output", "call_id": "c", "output": "sunny"},
            {"type": "function_call_output", "call_id": "d", "output": parts},
            {"type": "item_reference", "id": "kept"},
        ],
        kept=Message("kept", "assistant", "well"),
    ) == [
        Message("", "system", "x"),
        Message("m", "user", "a\nb"),
        Call("f", "c", "look", '{"a":1}'),
        CallOutput("", "c", "sunny"),
        CallOutput("", "d", "a\nb"),
        Message("kept", "assistant", "well"),
    ]


def call(name: str, arguments: str = "{}") -> Call:
    return Call("", name, "look", arguments)


def test_one_turn_of_an_assistant_is_one_message() -> None:
    items = [
        Message("", "user", "hi"),
        Message("", "assistant", "I look."),
        call("a", '{"x": 1}'),
        call("b", '{"x": '),
        Message("", "assistant", " There."),
        CallOutput("", "a", "sun"),
        CallOutput("", "b", "rain"),
        call("c"),
        CallOutput("", "c", "fog"),
        Message("", "assistant", "one"),
        Message("", "assistant", "two"),
    ]
    called = [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": {"x": 1}}},
        {"id": "b", "type": "function", "function": {"name": "look", "arguments": '{"x": '}},
    ]
    assert messages_of("Be kind.", items) == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "I look. There.", "tool_calls": called},
        {"role": "tool", "tool_call_id": "a", "content": "sun"},
        {"role": "tool", "tool_call_id": "b", "content": "rain"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": {}}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "fog"},
        {"role": "assistant", "content": "one"},
        {"role": "assistant", "content": "two"},
    ]
    assert messages_of("", []) == []
    assert messages_of("", [call("a")])[0]["role"] == "assistant"


def test_size() -> None:
    assert size_of([Message("", "user", "abc"), call("x"), CallOutput("", "x", "12345")]) == 3 + 6 + 5
