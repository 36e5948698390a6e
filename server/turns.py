"""A conversation as messages for a chat template: the same for every protocol that keeps it as items."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from paceline.engine.errors import RequestError

from .fields import JsonObject, parse_object


def add_words(messages: list[JsonObject], role: str, text: str, thought: str = "") -> None:
    """What somebody said. Behind calls the assistant goes on with the same turn: templates know one content for it, and
    many of them refuse two turns in a row."""
    last = messages[-1] if messages else {"role": ""}
    if role == "assistant" == last["role"] and "tool_calls" in last:
        last["content"] += text
    else:
        last = {"role": role, "content": text}
        messages.append(last)
    if thought:
        last.setdefault("reasoning_content", thought)


def add_call(messages: list[JsonObject], call_id: str, name: str, arguments: str, thought: str = "") -> None:
    """Calls belong to the assistant's turn before them. arguments: JSON text."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    if thought:
        messages[-1].setdefault("reasoning_content", thought)
    messages[-1].setdefault("tool_calls", []).append(template_call(call_id, name, arguments))


def add_result(messages: list[JsonObject], call_id: str, output: str) -> None:
    """What a tool gave back."""
    messages.append({"role": "tool", "tool_call_id": call_id, "content": output})


def template_call(call_id: str | None, name: str, arguments: str) -> JsonObject:
    """A call as chat templates take it, its arguments as an object where they are one."""
    known: Any = arguments
    with suppress(RequestError):  # a cut-off call of an earlier turn is history, not a mistake of this request
        known = parse_object(arguments, "arguments")
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": known}}


def callable_with(arguments: str) -> bool:
    """False for arguments that a model broke off in the middle of: there is nothing to call."""
    with suppress(RequestError):
        parse_object(arguments, "arguments")
        return True
    return False
