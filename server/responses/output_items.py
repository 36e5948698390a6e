"""The items of a response while they are written: each knows its events and its body."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, Protocol

from ..fields import JsonObject
from ..turns import callable_with
from .items import Call, Item, Message

ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputItem(Protocol):
    """Events are made here without a sequence number."""

    def opened(self) -> list[JsonObject]: ...
    def added(self, text: str, logprobs: list[JsonObject], extra: JsonObject) -> JsonObject:
        """The event of a piece of text. extra: more fields for it."""

    def closed(self, status: ItemStatus) -> list[JsonObject]: ...
    def body(self) -> JsonObject: ...
    def kept(self) -> Item | None:
        """What the conversation remembers of it."""


class _Written(ABC):
    """What all kinds share: an id, a place, a status and a growing text."""

    prefix: str  # of ids

    def __init__(self, item_id: str, output_index: int) -> None:
        self._id = item_id
        self._place: JsonObject = {"item_id": item_id, "output_index": output_index}
        self._status: ItemStatus = "in_progress"
        self._texts: list[str] = []

    @property
    def _text(self) -> str:
        return "".join(self._texts)

    @abstractmethod
    def body(self) -> JsonObject:
        """The item as clients see it."""

    def _item_event(self, kind: str) -> JsonObject:
        index = self._place["output_index"]
        return {"type": f"response.output_item.{kind}", "output_index": index, "item": self.body()}

    def _part_event(self, kind: str, part: JsonObject) -> JsonObject:
        return {"type": f"response.content_part.{kind}", **self._place, "content_index": 0, "part": part}


class Words(_Written):
    """A message with one text part."""

    prefix = "msg"

    def __init__(self, item_id: str, output_index: int) -> None:
        super().__init__(item_id, output_index)
        self._logprobs: list[JsonObject] = []
        self._begun = False

    def opened(self) -> list[JsonObject]:
        event = self._item_event("added")
        self._begun = True
        return [event, self._part_event("added", self._part())]

    def added(self, text: str, logprobs: list[JsonObject], extra: JsonObject) -> JsonObject:
        self._texts.append(text)
        self._logprobs += logprobs
        place = {**self._place, "content_index": 0}
        return {"type": "response.output_text.delta", **place, "delta": text, "logprobs": logprobs, **extra}

    def closed(self, status: ItemStatus) -> list[JsonObject]:
        self._status = status
        place = {**self._place, "content_index": 0}
        done = {"type": "response.output_text.done", **place, "text": self._text, "logprobs": list(self._logprobs)}
        return [done, self._part_event("done", self._part()), self._item_event("done")]

    def body(self) -> JsonObject:
        return {
            "id": self._id,
            "type": "message",
            "status": self._status,
            "role": "assistant",
            "content": [self._part()] if self._begun else [],
        }

    def kept(self) -> Item | None:
        return Message(self._id, "assistant", self._text) if self._texts or self._status == "completed" else None

    def _part(self) -> JsonObject:
        return {"type": "output_text", "text": self._text, "annotations": [], "logprobs": list(self._logprobs)}


class Thoughts(_Written):
    """What the model wrote for itself; the conversation does not remember it."""

    prefix = "rs"

    def opened(self) -> list[JsonObject]:
        return [self._item_event("added"), self._part_event("added", self._part())]

    def added(self, text: str, logprobs: list[JsonObject], extra: JsonObject) -> JsonObject:
        self._texts.append(text)
        place = {**self._place, "content_index": 0}
        return {"type": "response.reasoning_text.delta", **place, "delta": text, **extra}

    def closed(self, status: ItemStatus) -> list[JsonObject]:
        self._status = status
        place = {**self._place, "content_index": 0}
        done = {"type": "response.reasoning_text.done", **place, "text": self._text}
        return [done, self._part_event("done", self._part()), self._item_event("done")]

    def body(self) -> JsonObject:
        content = [self._part()] if self._texts else []
        return {"id": self._id, "type": "reasoning", "status": self._status, "summary": [], "content": content}

    def kept(self) -> Item | None:
        return None

    def _part(self) -> JsonObject:
        return {"type": "reasoning_text", "text": self._text}


class Calls(_Written):
    """One call of a tool."""

    prefix = "fc"

    def __init__(self, item_id: str, output_index: int, call_id: str, name: str) -> None:
        super().__init__(item_id, output_index)
        self._call_id = call_id
        self._name = name

    def opened(self) -> list[JsonObject]:
        return [self._item_event("added")]

    def added(self, text: str, logprobs: list[JsonObject], extra: JsonObject) -> JsonObject:
        self._texts.append(text)
        return {"type": "response.function_call_arguments.delta", **self._place, "delta": text, **extra}

    @property
    def broken(self) -> bool:
        """It ended before it was whole: nobody can answer it."""
        return self._status == "incomplete"

    def closed(self, status: ItemStatus) -> list[JsonObject]:
        self._status = status if callable_with(self._text) else "incomplete"
        done = {"type": "response.function_call_arguments.done", **self._place}
        return [{**done, "name": self._name, "arguments": self._text}, self._item_event("done")]

    def body(self) -> JsonObject:
        return {
            "id": self._id,
            "type": "function_call",
            "status": self._status,
            "call_id": self._call_id,
            "name": self._name,
            "arguments": self._text,
        }

    def kept(self) -> Item | None:
        """A call that was cut off never was one: no tool can answer it, and templates want an answer."""
        return Call(self._id, self._call_id, self._name, self._text) if self._status == "completed" else None

    def stub(self) -> JsonObject:
        """What its answer must name."""
        return {"type": "function_call_output", "call_id": self._call_id, "name": self._name}
