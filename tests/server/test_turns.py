from __future__ import annotations

from typing import Any

from paceline.server.fields import JsonObject
from paceline.server.turns import add_call, add_result, add_words, callable_with, template_call


def called(call_id: str, arguments: Any) -> JsonObject:
    return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": arguments}}


def test_what_an_assistant_says_and_calls_before_anybody_answers_is_one_turn() -> None:
    messages: list[JsonObject] = []
    add_words(messages, "user", "hi")
    add_words(messages, "assistant", "I look.", "Hm.")
    add_call(messages, "a", "look", '{"x": 1}')
    add_call(messages, "b", "look", "{}")
    add_words(messages, "assistant", " There.", "So.")
    add_result(messages, "a", "sun")
    add_result(messages, "b", "rain")
    add_call(messages, "c", "look", "{}", "And?")
    add_result(messages, "c", "fog")
    add_words(messages, "assistant", "one")
    add_words(messages, "assistant", "two")
    turn = {"role": "assistant", "content": "I look. There.", "reasoning_content": "Hm."}
    assert messages == [
        {"role": "user", "content": "hi"},
        {**turn, "tool_calls": [called("a", {"x": 1}), called("b", {})]},
        {"role": "tool", "tool_call_id": "a", "content": "sun"},
        {"role": "tool", "tool_call_id": "b", "content": "rain"},
        {"role": "assistant", "content": "", "reasoning_content": "And?", "tool_calls": [called("c", {})]},
        {"role": "tool", "tool_call_id": "c", "content": "fog"},
        {"role": "assistant", "content": "one"},
        {"role": "assistant", "content": "two"},
    ]


def test_arguments_that_were_cut_off_stay_as_they_are() -> None:
    assert template_call(None, "look", '{"x": ') == {**called("", '{"x": '), "id": None}
    assert callable_with('{"x": 1}')
    assert not callable_with('{"x": ')
    assert not callable_with("1")
