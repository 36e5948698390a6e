"""Responses that are kept, so that a later one can go on from them: in memory, bounded, each for one caller."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from ..api_errors import ApiError
from ..context import Settings
from ..fields import JsonObject
from .items import Item, size_of

MAX_SOCKET_CHARS = 2**23  # of what one socket may make the server remember besides what is stored


def too_large(kept: Sequence[Sequence[Item]]) -> bool:
    """Whether the oldest of what a socket has kept must go; the newest may stay, whatever its size."""
    return len(kept) > 1 and sum(map(size_of, kept)) > MAX_SOCKET_CHARS


@dataclass(frozen=True, slots=True)
class Stored:
    """A response that has ended. items: the whole conversation up to it, its own output included."""

    body: JsonObject
    items: tuple[Item, ...]

    @property
    def id(self) -> str:
        response_id: str = self.body["id"]
        return response_id


class ResponseStore:
    """The oldest go first when there are too many, and all go when their time is over."""

    def __init__(
        self, *, max_number: int, max_chars: int, lifetime_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """max_chars: of all that is kept together; a conversation counts in full for each of its responses."""
        self._max_number = max_number
        self._max_chars = max_chars
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._kept: OrderedDict[tuple[str, str], tuple[Stored, int, float]] = OrderedDict()  # by caller and id
        self._items: dict[tuple[str, str], Item] = {}  # what the model wrote, by caller and id
        self._chars = 0

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, caller: str, stored: Stored) -> None:
        self._drop_old()
        size = size_of(stored.items) + len(orjson.dumps(stored.body))
        self._kept[caller, stored.id] = (stored, size, self._clock() + self._lifetime_s)
        self._chars += size
        written = _written(stored)
        self._items |= {(caller, item.id): item for item in stored.items if item.id in written}
        while len(self._kept) > self._max_number or self._chars > self._max_chars:
            self._drop(next(iter(self._kept)))

    def find(self, caller: str, response_id: str) -> Stored | None:
        self._drop_old()
        entry = self._kept.get((caller, response_id))
        return None if entry is None else entry[0]

    def remove(self, caller: str, response_id: str) -> bool:
        """False when there was none."""
        self._drop_old()
        known = (caller, response_id) in self._kept
        if known:
            self._drop((caller, response_id))
        return known

    def item(self, caller: str, item_id: str) -> Item | None:
        """What the model wrote under this id in a response that is kept."""
        self._drop_old()
        return self._items.get((caller, item_id))

    def _drop_old(self) -> None:
        """All live equally long, so the first to go stands first."""
        now = self._clock()
        while self._kept and next(iter(self._kept.values()))[2] <= now:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, str]) -> None:
        stored, size, _ = self._kept.pop(key)
        self._chars -= size
        for item_id in _written(stored):
            self._items.pop((key[0], item_id), None)


def _written(stored: Stored) -> set[str]:
    return {item["id"] for item in stored.body["output"]}


def not_found(response_id: str, param: str | None = None) -> ApiError:
    """The refusal of an id that names nothing, or what belongs to another caller. param: the field that names it."""
    return ApiError(
        404,
        f"There is no response {response_id[:80]!r} here (any more); send the whole conversation as input.",
        param=param,
        code="response_not_found" if param is None else param.removesuffix("_id") + "_not_found",
    )


def conversation(items: Sequence[Item], previous: str | None, find: Callable[[str], Stored | None]) -> tuple[Item, ...]:
    """`items` behind the conversation of the response called `previous`. Raises ApiError when there is none."""
    if previous is None:
        return tuple(items)
    stored = find(previous)
    if stored is None:
        raise not_found(previous, "previous_response_id")
    return (*stored.items, *items)


def response_store(settings: Settings) -> ResponseStore:
    return ResponseStore(
        max_number=settings.max_responses,
        max_chars=settings.max_responses_size,
        lifetime_s=settings.response_lifetime_s,
    )
