"""What one realtime response writes, item by item, from the parts of its reply, and the events that tell of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .conversation import Conversation
from .fields import JsonObject
from .ids import NewId
from .items import FunctionCall, Item, Message, Status
from .reply_parts import CallArguments, CallBegin, Part, Thought, Words
from .turns import callable_with

TEXT = "response.output_text"
ARGUMENTS = "response.function_call_arguments"
REASONING = "x_response.reasoning"
DELTA = f"{TEXT}.delta"
DELTAS = frozenset((DELTA, f"{ARGUMENTS}.delta", f"{REASONING}.delta"))


class _Writer(Protocol):
    """What is being written: events without the ids of response and item."""

    @property
    def item(self) -> Item | None:
        """None: nothing that stays in the conversation."""

    def opened(self) -> list[JsonObject]: ...
    def delta(self, text: str) -> JsonObject: ...
    def done(self, status: Status) -> list[JsonObject]:
        """Settles the item; `status` is that of the response, or completed where something else follows."""


@dataclass(slots=True)
class _WordsWriter:
    item: Message

    def opened(self) -> list[JsonObject]:
        part = {"type": "text", "text": ""}
        return [{"type": "response.content_part.added", "content_index": 0, "part": part}]

    def delta(self, text: str) -> JsonObject:
        self.item.text += text
        return {"type": DELTA, "content_index": 0, "delta": text}

    def done(self, status: Status) -> list[JsonObject]:
        self.item.status = status
        text = self.item.text
        return [
            {"type": f"{TEXT}.done", "content_index": 0, "text": text},
            {"type": "response.content_part.done", "content_index": 0, "part": {"type": "text", "text": text}},
        ]


@dataclass(slots=True)
class _CallWriter:
    item: FunctionCall

    def opened(self) -> list[JsonObject]:
        return []

    def delta(self, text: str) -> JsonObject:
        self.item.arguments += text
        return {"type": f"{ARGUMENTS}.delta", "call_id": self.item.call_id, "delta": text}

    def done(self, status: Status) -> list[JsonObject]:
        call = self.item
        call.status = status if callable_with(call.arguments) else "incomplete"
        event = {"type": f"{ARGUMENTS}.done", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        return [event]


@dataclass(slots=True)
class _ThoughtWriter:
    item: None = None
    text: str = ""

    def opened(self) -> list[JsonObject]:
        return []

    def delta(self, text: str) -> JsonObject:
        self.text += text
        return {"type": f"{REASONING}.delta", "delta": text}

    def done(self, _: Status) -> list[JsonObject]:
        return [{"type": f"{REASONING}.done", "text": self.text}]


class ResponseOutput:
    """One thing is written at a time; the next one closes it. An item is announced with its first character.

    conversation: where the items go, behind `after`; None for a response beside it.
    """

    def __init__(
        self, response_id: str, new_id: NewId, *, conversation: Conversation | None, after: Item | None
    ) -> None:
        self.items: list[Item] = []
        self._response_id = response_id
        self._new_id = new_id
        self._conversation = conversation
        self._after = after
        self._writer: _Writer | None = None
        self._thought = ""  # for the item that follows from it

    def take(self, part: Part) -> list[JsonObject]:
        """The events of one part."""
        match part:
            case Words(text):
                opened = [] if isinstance(self._writer, _WordsWriter) else self._open(_WordsWriter(self._message()))
                return [*opened, self._delta(text)]
            case Thought(text):
                self._thought += text
                opened = [] if isinstance(self._writer, _ThoughtWriter) else self._open(_ThoughtWriter())
                return [*opened, self._delta(text)]
            case CallBegin(_, call_id, name):
                call = FunctionCall(
                    id=self._new_id("item"), call_id=call_id, name=name, status="in_progress", thought=self._thought
                )
                return self._open(_CallWriter(call))
            case CallArguments(_, text):
                return [self._delta(text)]

    def rest(self) -> list[JsonObject]:
        """A delta without text, for figures that no text carries."""
        opened = self._open(_WordsWriter(self._message())) if self._writer is None else []
        return [*opened, self._delta("")]

    def close(self, status: Status) -> list[JsonObject]:
        """The end of the reply, which has at least one item."""
        events = [] if self.items else self._open(_WordsWriter(self._message()))
        return events + self._close(status)

    def _message(self) -> Message:
        return Message(id=self._new_id("item"), role="assistant", status="in_progress", thought=self._thought)

    def _delta(self, text: str) -> JsonObject:
        assert self._writer is not None
        return self._named(self._writer, self._writer.delta(text))

    def _open(self, writer: _Writer) -> list[JsonObject]:
        events = self._close("completed")
        self._writer = writer
        if writer.item is not None:
            self._thought = ""
            self.items.append(writer.item)
            events.append(self._of_output("response.output_item.added", writer.item))
            if self._conversation is not None:
                before = self._conversation.add_reply(writer.item, self._after)
                events.append(_of_conversation("conversation.item.added", writer.item, before))
                self._after = writer.item
        return events + [self._named(writer, event) for event in writer.opened()]

    def _close(self, status: Status) -> list[JsonObject]:
        writer, self._writer = self._writer, None
        if writer is None:
            return []
        events = [self._named(writer, event) for event in writer.done(status)]
        if writer.item is not None:
            events.append(self._of_output("response.output_item.done", writer.item))
            if self._conversation is not None:
                self._conversation.version += 1
                before = self._conversation.before(writer.item)
                events.append(_of_conversation("conversation.item.done", writer.item, before))
        return events

    def _named(self, writer: _Writer, event: JsonObject) -> JsonObject:
        if writer.item is None:
            return {"response_id": self._response_id, **event}
        return {**self._place(writer.item), "item_id": writer.item.id, **event}

    def _place(self, item: Item) -> JsonObject:
        index = next(i for i, known in enumerate(self.items) if known is item)
        return {"response_id": self._response_id, "output_index": index}

    def _of_output(self, kind: str, item: Item) -> JsonObject:
        return {"type": kind, **self._place(item), "item": item.body()}


def _of_conversation(kind: str, item: Item, before: str | None) -> JsonObject:
    return {"type": kind, "previous_item_id": before, "item": item.body()}
