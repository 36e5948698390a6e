"""The items of a conversation as the Responses API has them, and the messages they are for a chat template."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..api_errors import not_supported
from ..chat_request import read_content
from ..fields import Fields, JsonObject, describe
from ..turns import add_call, add_result, add_words

ROLES = ("user", "assistant", "system", "developer")
_TEXT_PARTS = ("input_text", "output_text", "text")


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody said. `role` is one a chat template knows: user, assistant or system."""

    id: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """The model called a tool. arguments: JSON text as the model wrote it, perhaps cut off."""

    id: str
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallOutput:
    """What a tool answered."""

    id: str
    call_id: str
    output: str


Item = Message | Call | CallOutput


def size_of(items: Iterable[Item]) -> int:
    """Characters that must be remembered for these items."""
    total = 0
    for item in items:
        match item:
            case Message():
                total += len(item.text)
            case Call():
                total += len(item.name) + len(item.arguments)
            case CallOutput():
                total += len(item.output)
    return total


def read_input(fields: Fields, find: Callable[[str], Item | None], max_items: int) -> list[Item]:
    """`input`: a string, which is a user's message, or a list of items; absent is empty.

    find: the item that an `item_reference` names. Raises RequestError or ApiError, naming the field.
    """
    value = fields.values.get("input")
    if value is None:
        return []
    if isinstance(value, str):
        return [Message("", "user", value)]
    if not isinstance(value, list):
        fields.refuse("input", f"must be a string or a list of items, got {describe(value)}.")
    if len(value) > max_items:
        fields.refuse("input", f"may hold at most {max_items} items, got {len(value)}.")
    read = (_read_item(entry, find) for entry in fields.each("input"))
    return [item for item in read if item is not None]


def _read_item(fields: Fields, find: Callable[[str], Item | None]) -> Item | None:
    """None for what the prompt does not hold."""
    kind = fields.string("type") or "message"
    item_id = fields.string("id") or ""
    if kind == "message":
        return _read_message(fields, item_id)
    if kind == "function_call":
        name, arguments = _required(fields, "name"), fields.string("arguments") or "{}"
        return Call(item_id, _required(fields, "call_id"), name, arguments)
    if kind == "function_call_output":
        if not fields.has("output"):
            fields.refuse("output", "is missing; send what the tool answered, as a string or as text parts.")
        return CallOutput(item_id, _required(fields, "call_id"), read_content(fields, _TEXT_PARTS, "output"))
    if kind == "reasoning":  # the thoughts of earlier turns are not for the prompt
        return None
    if kind == "item_reference":
        named = _required(fields, "id")
        found = find(named)
        if found is None:
            fields.refuse("id", f"names no item that is kept here: {named[:80]!r}; send the item itself.")
        return found
    raise not_supported(fields.name("type"), f"An item of type {kind[:40]!r}")


def _read_message(fields: Fields, item_id: str) -> Message:
    role = fields.choice("role", ROLES)
    if role is None:
        fields.refuse("role", f"is missing; use one of {', '.join(ROLES)}.")
    if not fields.has("content"):
        fields.refuse("content", "is missing; send a string or a list of text parts.")
    return Message(item_id, "system" if role == "developer" else role, read_content(fields, _TEXT_PARTS))


def _required(fields: Fields, key: str) -> str:
    value = fields.string(key)
    if not value:
        fields.refuse(key, "is missing; send a string.")
    return value


def messages_of(instructions: str, items: Sequence[Item]) -> list[JsonObject]:
    """The conversation as chat completions have it. What an assistant says and calls in one turn is one message."""
    messages: list[JsonObject] = [{"role": "system", "content": instructions}] if instructions else []
    for item in items:
        match item:
            case Message(role=role, text=text):
                add_words(messages, role, text)
            case Call(call_id=call_id, name=name, arguments=arguments):
                add_call(messages, call_id, name, arguments)
            case CallOutput(call_id=call_id, output=output):
                add_result(messages, call_id, output)
    return messages
