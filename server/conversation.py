"""The items of one realtime conversation, in order, within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from paceline.engine.errors import RequestError

from .api_errors import not_supported
from .chat_request import read_content
from .fields import Fields, JsonObject

Status = Literal["completed", "incomplete", "in_progress"]

_PART_KINDS = {"user": "input_text", "system": "input_text", "assistant": "output_text"}


@dataclass(slots=True)
class Item:
    """One message. Only the reply that is being written changes."""

    id: str
    role: str
    text: str
    status: Status = "completed"

    def body(self) -> JsonObject:
        """The item as clients see it."""
        started = bool(self.text) or self.status != "in_progress"
        return {
            "id": self.id,
            "object": "realtime.item",
            "type": "message",
            "status": self.status,
            "role": self.role,
            "content": [{"type": _PART_KINDS[self.role], "text": self.text}] if started else [],
        }

    def message(self) -> JsonObject:
        """The item as a chat template takes it."""
        return {"role": self.role, "content": self.text}


def read_item(fields: Fields, new_id: str) -> Item:
    """A client's item; `new_id` is used when it brings none. Raises RequestError or ApiError."""
    kind = fields.string("type") or "message"
    if kind != "message":
        raise not_supported(fields.name("type"), f"An item of type {kind[:40]!r}")
    role = fields.choice("role", (*_PART_KINDS, "developer"))
    if role is None:
        fields.refuse("role", f"is missing; use one of {', '.join(_PART_KINDS)}.")
    item_id = fields.string("id")
    if item_id is not None and not 0 < len(item_id) <= 64:
        fields.refuse("id", f"must have 1 to 64 characters, got {len(item_id)}.")
    if not fields.has("content"):
        fields.refuse("content", "is missing; send a list with one text part.")
    text = read_content(fields, ("input_text", "output_text", "text"))
    return Item(item_id or new_id, "system" if role == "developer" else role, text)


class Conversation:
    """max_items, max_chars: what one client may make the server remember."""

    def __init__(self, *, max_items: int, max_chars: int) -> None:
        self._items: list[Item] = []
        self._max_items = max_items
        self._max_chars = max_chars

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def find(self, item_id: str, param: str = "item_id") -> Item:
        """Raises RequestError (code `item_not_found`)."""
        found = next((item for item in self._items if item.id == item_id), None)
        if found is None:
            raise RequestError(
                f"There is no item {item_id[:80]!r} in this conversation.", param=param, code="item_not_found"
            )
        return found

    @property
    def last(self) -> Item | None:
        return self._items[-1] if self._items else None

    def add_reply(self, item: Item, after: Item | None) -> str | None:
        """The model's own item, behind `after`: the last one when the reply was asked for, None for an empty
        conversation. What came since stands behind it; it stands last when `after` was deleted.

        Never refused: its length is bounded by the context. Returns the id of the item before it.
        """
        place = 0 if after is None else len(self._items)
        for index, known in enumerate(self._items):
            if known is after:
                place = index + 1
        self._items.insert(place, item)
        return self.before(item)

    def add(self, item: Item, after: str | None = None) -> str | None:
        """Inserts behind the item `after`, first for "root", last for None; returns the id of the item before it.

        Raises RequestError for an unknown `after`, an id that is taken, or a conversation over its bounds.
        """
        if any(known.id == item.id for known in self._items):
            raise RequestError(
                f"The item id {item.id!r} is taken; choose another or leave it out.",
                param="item.id",
                code="item_exists",
            )
        chars = sum(len(known.text) for known in self._items) + len(item.text)
        if len(self._items) >= self._max_items or chars > self._max_chars:
            raise RequestError(
                f"The conversation is full ({self._max_items} items or {self._max_chars} characters); "
                "delete items, or open a new session.",
                code="conversation_full",
            )
        place = len(self._items)
        if after == "root":
            place = 0
        elif after is not None:
            place = self._items.index(self.find(after, "previous_item_id")) + 1
        self._items.insert(place, item)
        return self.before(item)

    def before(self, item: Item) -> str | None:
        """The id of the item before `item`; None when it is the first, or gone."""
        previous = None
        for known in self._items:
            if known is item:
                return previous
            previous = known.id
        return None  # it was deleted

    def remove(self, item: Item) -> None:
        self._items.remove(item)

    def messages(self) -> list[JsonObject]:
        """For the chat template; replies that were cut off before their first word are left out."""
        return [item.message() for item in self._items if item.text or item.status == "completed"]
