"""The items of one realtime conversation, in order, within bounds."""

from __future__ import annotations

from collections.abc import Iterator

from paceline.engine.errors import RequestError

from .items import FunctionCall, FunctionCallOutput, Item, Message


class Conversation:
    """max_items, max_chars: what one client may make the server remember."""

    def __init__(self, *, max_items: int, max_chars: int) -> None:
        self._items: list[Item] = []
        self._max_items = max_items
        self._max_chars = max_chars
        self.version = 0  # another number after each change, but for a reply that grows

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
        self.version += 1
        return self.before(item)

    def add(self, item: Item, after: str | None = None) -> str | None:
        """Inserts behind the item `after`, first for "root", last for None; returns the id of the item before it.

        Raises RequestError for an unknown `after`, an id that is taken, the output of a call that is not there, or a
        conversation over its bounds.
        """
        if any(known.id == item.id for known in self._items):
            raise RequestError(
                f"The item id {item.id!r} is taken; choose another or leave it out.",
                param="item.id",
                code="item_exists",
            )
        if isinstance(item, FunctionCallOutput) and not self._has_call(item.call_id):
            raise RequestError(
                f"There is no function call {item.call_id!r} in this conversation; add the call before its output.",
                param="item.call_id",
                code="call_not_found",
            )
        self.require_room(item.size)
        place = len(self._items)
        if after == "root":
            place = 0
        elif after is not None:
            place = self._items.index(self.find(after, "previous_item_id")) + 1
        self._items.insert(place, item)
        self.version += 1
        return self.before(item)

    def require_room(self, chars: int) -> None:
        """Raises RequestError (code `conversation_full`) when an item of so many characters cannot be added."""
        size = sum(known.size for known in self._items) + chars
        if len(self._items) >= self._max_items or size > self._max_chars:
            raise RequestError(
                f"The conversation is full ({self._max_items} items or {self._max_chars} characters); "
                "delete items, or open a new session.",
                code="conversation_full",
            )

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
        self.version += 1

    def cut(self, message: Message, end: int) -> None:
        """Keeps the first `end` code points of a message."""
        if end < len(message.text):
            message.text = message.text[:end]
            message.status = "incomplete"
        self.version += 1

    def _has_call(self, call_id: str) -> bool:
        return any(isinstance(known, FunctionCall) and known.call_id == call_id for known in self._items)
