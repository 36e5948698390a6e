"""Events on their way to one socket: bounded, and merging text deltas while the client is slow."""

from __future__ import annotations

import asyncio
from collections import deque

from .fields import JsonObject
from .step_counts import add_counts


class Outbox:
    """First in, first out, except that a delta joins the one of its response or item that still waits.

    So a response has at most one delta waiting: text is joined, counts are summed, x_seq is the last one. What a
    client's own messages bring is bounded by its reader, which looks at `full`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._events: deque[JsonObject] = deque()
        self._waiting_delta: dict[str, JsonObject] = {}  # by place
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def full(self) -> bool:
        """True while the client is behind: as many events wait as the limit says, or more."""
        return len(self._events) >= self._limit

    def put(self, event: JsonObject) -> None:
        place = _place_of(event)
        if "delta" in event:
            waiting = self._waiting_delta.get(place)
            if waiting is not None and waiting["type"] == event["type"]:
                _join(waiting, event)
                return
            event = dict(event)
            self._waiting_delta[place] = event
        else:
            self._waiting_delta.pop(place, None)
        self._events.append(event)
        self._changed.set()

    async def get(self) -> JsonObject:
        while not self._events:
            self._changed.clear()
            await self._changed.wait()
        event = self._events.popleft()
        place = _place_of(event)
        if self._waiting_delta.get(place) is event:
            del self._waiting_delta[place]
        return event


def _place_of(event: JsonObject) -> str:
    """What an event is about: a response, or, where events do not name it, one of its items."""
    place: str = event.get("response_id") or event.get("item_id") or ""
    return place


def _join(first: JsonObject, second: JsonObject) -> None:
    """`sequence_number` stays that of the first: numbers never go back."""
    first["delta"] += second["delta"]
    if "x_seq" in second:
        first["x_seq"] = second["x_seq"]
    if "x_spec" in second:
        first["x_spec"] = add_counts(first["x_spec"], second["x_spec"]) if "x_spec" in first else second["x_spec"]
    if "logprobs" in second:
        first["logprobs"] = [*first["logprobs"], *second["logprobs"]]
