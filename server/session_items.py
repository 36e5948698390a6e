"""What a client does to the items of its conversation, and to the text it is still writing."""

from __future__ import annotations

from collections.abc import Callable

from paceline.engine.errors import RequestError

from .api_errors import ApiError
from .fields import Fields
from .items import Item, Message, read_item
from .session_outputs import Output, send
from .session_state import SessionState

Handlers = dict[str, Callable[[Fields], list[Output]]]


def item_handlers(state: SessionState) -> Handlers:
    """Of every client event about items and pending text. They raise RequestError or ApiError, with nothing changed."""
    events = _ItemEvents(state)
    return {
        "conversation.item.create": events.create,
        "conversation.item.retrieve": events.retrieve,
        "conversation.item.delete": events.delete,
        "conversation.item.truncate": events.truncate,
        "input_text.append": events.append,
        "input_text.clear": events.clear,
        "input_text.commit": events.commit,
    }


class _ItemEvents:
    def __init__(self, state: SessionState) -> None:
        self._state = state
        self._conversation = state.conversation

    def create(self, fields: Fields) -> list[Output]:
        item = read_item(fields.required("item", "type, role and content"), self._state.new_id)
        return self._add(item, fields.string("previous_item_id"))

    def retrieve(self, fields: Fields) -> list[Output]:
        return send({"type": "conversation.item.retrieved", "item": self._state.named_item(fields).body()})

    def delete(self, fields: Fields) -> list[Output]:
        item = self._settled(fields)
        self._conversation.remove(item)
        return send({"type": "conversation.item.deleted", "item_id": item.id})

    def truncate(self, fields: Fields) -> list[Output]:
        """Cuts a reply to what was heard of it."""
        item = self._settled(fields)
        if not isinstance(item, Message) or item.role != "assistant":
            fields.refuse("item_id", f"{item.id!r} is no message of the assistant; only those can be cut.")
        index = fields.integer("content_index", low=0, high=0) or 0
        audio_end = fields.integer("audio_end_ms", low=0)
        if audio_end is not None and not fields.has("x_text_end"):
            raise ApiError(
                400,
                "audio_end_ms alone is not supported, for replies are text; say in x_text_end how many characters of "
                "the text were heard.",
                param="audio_end_ms",
                code="unsupported",
            )
        end = fields.integer("x_text_end", low=0, high=len(item.text))
        if end is None:
            fields.refuse("x_text_end", "is missing; say how many characters of the text were heard.")
        self._conversation.cut(item, end)
        event = {"item_id": item.id, "content_index": index, "audio_end_ms": audio_end or 0, "x_text_end": end}
        return send({"type": "conversation.item.truncated", **event})

    def append(self, fields: Fields) -> list[Output]:
        text = fields.string("text")
        if text is None:
            fields.refuse("text", "is missing; send what was said since the last append.")
        self._conversation.require_room(len(self._state.pending) + len(text))
        self._state.pending += text
        return []

    def clear(self, _: Fields) -> list[Output]:
        self._state.pending = ""
        return send({"type": "input_text.cleared"})

    def commit(self, fields: Fields) -> list[Output]:
        if not self._state.pending:
            raise RequestError(
                "There is no text to commit; send input_text.append first.", param="type", code="input_text_empty"
            )
        item = Message(id=self._state.new_id("item"), role="user", text=self._state.pending)
        added = self._add(item, fields.string("previous_item_id"))
        self._state.pending = ""
        before = self._conversation.before(item)
        return [*send({"type": "input_text.committed", "previous_item_id": before, "item_id": item.id}), *added]

    def _add(self, item: Item, after: str | None) -> list[Output]:
        before = self._conversation.add(item, after)
        kinds = ("conversation.item.added", "conversation.item.done")
        return send(*({"type": kind, "previous_item_id": before, "item": item.body()} for kind in kinds))

    def _settled(self, fields: Fields) -> Item:
        """An item that nobody writes any more."""
        item = self._state.named_item(fields)
        if item.status == "in_progress":
            fields.refuse(
                "item_id",
                f"{item.id!r} is still being written; cancel its response first.",
                code="item_in_progress",
            )
        return item
