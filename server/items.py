"""The items of a realtime conversation: what each holds, how clients see it, and what it is to the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from .api_errors import not_supported
from .chat_request import read_content
from .fields import Fields, JsonObject, parse_object
from .ids import NewId
from .turns import add_call, add_result, add_words

Status = Literal["completed", "incomplete", "in_progress"]

MAX_ID = 64  # characters
_PART_KINDS = {"user": "input_text", "system": "input_text", "assistant": "output_text"}


@dataclass(slots=True, kw_only=True)
class Message:
    """Text with a role. Of the model's own, the one that is being written grows. thought: what it thought before."""

    kind: ClassVar = "message"
    id: str
    role: str
    text: str = ""
    status: Status = "completed"
    thought: str = ""

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.text)

    def body(self) -> JsonObject:
        """The item as clients see it."""
        started = bool(self.text) or self.status != "in_progress"
        content = [{"type": _PART_KINDS[self.role], "text": self.text}] if started else []
        return {**_head(self), "role": self.role, "content": content}

    def say(self, messages: list[JsonObject]) -> None:
        """Appends what a chat template is told; nothing for a reply that was cut off before its first word."""
        if self.text or self.status == "completed":
            add_words(messages, self.role, self.text, self.thought)


@dataclass(slots=True, kw_only=True)
class FunctionCall:
    """arguments: JSON text, whole or (status incomplete) cut off."""

    kind: ClassVar = "function_call"
    id: str
    call_id: str
    name: str
    arguments: str = ""
    status: Status = "completed"
    thought: str = ""

    @property
    def size(self) -> int:
        return len(self.name) + len(self.arguments)

    def body(self) -> JsonObject:
        return {**_head(self), "call_id": self.call_id, "name": self.name, "arguments": self.arguments}

    def say(self, messages: list[JsonObject]) -> None:
        """Nothing for a call that was cut off: it was never made."""
        if self.status == "completed":
            add_call(messages, self.call_id, self.name, self.arguments, self.thought)


@dataclass(slots=True, kw_only=True)
class FunctionCallOutput:
    """What the client's function gave back."""

    kind: ClassVar = "function_call_output"
    id: str
    call_id: str
    output: str
    status: Status = "completed"

    @property
    def size(self) -> int:
        return len(self.output)

    def body(self) -> JsonObject:
        return {**_head(self), "call_id": self.call_id, "output": self.output}

    def say(self, messages: list[JsonObject]) -> None:
        add_result(messages, self.call_id, self.output)


Item = Message | FunctionCall | FunctionCallOutput


def chat_messages(items: Iterable[Item]) -> list[JsonObject]:
    """A conversation as a chat template takes it."""
    messages: list[JsonObject] = []
    for item in items:
        item.say(messages)
    return messages


def read_item(fields: Fields, new_id: NewId) -> Item:
    """A client's item; ids it does not bring are made. Raises RequestError or ApiError, naming the field."""
    kind = fields.string("type") or Message.kind
    reader = _READERS.get(kind)
    if reader is None:
        raise not_supported(fields.name("type"), f"An item of type {kind[:40]!r}")
    item_id = _read_id(fields, "id")
    return reader(fields, item_id or new_id("item"), new_id)


def _read_message(fields: Fields, item_id: str, _: NewId) -> Message:
    role = fields.choice("role", (*_PART_KINDS, "developer"))
    if role is None:
        fields.refuse("role", f"is missing; use one of {', '.join(_PART_KINDS)}.")
    if not fields.has("content"):
        fields.refuse("content", "is missing; send a list with one text part.")
    text = read_content(fields, ("input_text", "output_text", "text"))
    return Message(id=item_id, role="system" if role == "developer" else role, text=text)


def _read_call(fields: Fields, item_id: str, new_id: NewId) -> FunctionCall:
    name, arguments = _text(fields, "name"), _text(fields, "arguments")
    status: Status = "completed"
    if fields.choice("status", ("completed", "incomplete", "in_progress")) in (None, "completed"):
        parse_object(arguments, fields.name("arguments"), param=fields.name("arguments"))
    else:
        status = "incomplete"
    call_id = _read_id(fields, "call_id") or new_id("call")
    return FunctionCall(id=item_id, call_id=call_id, name=name, arguments=arguments, status=status)


def _read_output(fields: Fields, item_id: str, _: NewId) -> FunctionCallOutput:
    call_id = _read_id(fields, "call_id")
    if call_id is None:
        fields.refuse("call_id", "is missing; name the function call that this is the output of.")
    return FunctionCallOutput(id=item_id, call_id=call_id, output=_text(fields, "output"))


_READERS: dict[str, Callable[[Fields, str, NewId], Item]] = {
    Message.kind: _read_message,
    FunctionCall.kind: _read_call,
    FunctionCallOutput.kind: _read_output,
}


def _read_id(fields: Fields, key: str) -> str | None:
    value = fields.string(key)
    if value is not None and not 0 < len(value) <= MAX_ID:
        fields.refuse(key, f"must have 1 to {MAX_ID} characters, got {len(value)}.")
    return value


def _text(fields: Fields, key: str) -> str:
    value = fields.string(key)
    if value is None:
        fields.refuse(key, "is missing; it must be a string.")
    return value


def _head(item: Item) -> JsonObject:
    return {"id": item.id, "object": "realtime.item", "type": item.kind, "status": item.status}
