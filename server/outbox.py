"""Events on their way to one socket: bounded, and merging deltas while the client is slow."""

from __future__ import annotations

import asyncio
from collections import deque

from .fields import JsonObject
from .step_counts import add_counts

# What says where a delta belongs: two that agree in all of it can be one
_PLACE = ("type", "item_id", "output_index", "content_index")
# Tell nothing that the text does not: a client that is behind does without them
_DISPENSABLE = frozenset(("x_response.clause",))


class Outbox:
    """First in, first out, except that a delta joins the last one of its response that still waits, if it continues it;
    where events do not name their response, of its item.

    Text is joined, counts are summed, steps and timings are kept, of a trace's trees the newest alone, and the sequence
    number is the last one; a delta of another kind or item stands behind it. So the events that wait for a response do
    not grow in number with its length. What a client's own messages bring is bounded by its reader, which looks at
    `full`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._events: deque[JsonObject] = deque()
        self._waiting_delta: dict[str, JsonObject] = {}  # by whose it is: its last event here, if that is a delta
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def full(self) -> bool:
        """True while the client is behind: as many events wait as the limit says, or more."""
        return len(self._events) >= self._limit

    def put(self, event: JsonObject) -> None:
        """The event itself is not changed."""
        owner = _owner_of(event)
        if event["type"] in _DISPENSABLE:
            if self.full:
                return
        elif "delta" in event:
            waiting = self._waiting_delta.get(owner)
            if waiting is not None and all(waiting.get(key) == event.get(key) for key in _PLACE):
                _join(waiting, event)
                return
            event = dict(event)
            self._waiting_delta[owner] = event
        else:
            self._waiting_delta.pop(owner, None)
        self._events.append(event)
        self._changed.set()

    async def get(self) -> JsonObject:
        while not self._events:
            self._changed.clear()
            await self._changed.wait()
        event = self._events.popleft()
        if self._waiting_delta.get(_owner_of(event)) is event:
            del self._waiting_delta[_owner_of(event)]
        return event


def _owner_of(event: JsonObject) -> str:
    """ "" for what is about no response."""
    owner: str = event.get("response_id") or event.get("item_id") or ""
    return owner


def _join(first: JsonObject, second: JsonObject) -> None:
    """`sequence_number` stays that of the first: it never goes back."""
    first["delta"] += second["delta"]
    if "x_seq" in second:
        first["x_seq"] = second["x_seq"]
    if "x_spec" in first or "x_spec" in second:
        first["x_spec"] = add_counts(first.get("x_spec", {}), second.get("x_spec", {}))
    if "logprobs" in second:
        first["logprobs"] = [*first["logprobs"], *second["logprobs"]]
    if "x_timing" in second:
        first["x_timing"] = [*first.get("x_timing", ()), *second["x_timing"]]
