"""Events on their way to one socket: bounded, and merging text deltas while the client is slow."""

from __future__ import annotations

import asyncio
from collections import deque

from .fields import JsonObject
from .response_output import DELTA
from .step_counts import add_counts


class Outbox:
    """First in, first out, except that a text delta joins the one of its response that still waits.

    So a response has at most one delta waiting: text is joined, counts are summed, the sequence number is the last
    one. What a client's own messages bring is bounded by its reader, which looks at `full`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._events: deque[JsonObject] = deque()
        self._waiting_delta: dict[str, JsonObject] = {}  # by response id
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._events)

    @property
    def full(self) -> bool:
        """True while the client is behind: as many events wait as the limit says, or more."""
        return len(self._events) >= self._limit

    def put(self, event: JsonObject) -> None:
        response_id = event.get("response_id")
        if event["type"] == DELTA:
            waiting = self._waiting_delta.get(event["response_id"])
            if waiting is not None:
                waiting["delta"] += event["delta"]
                waiting["x_seq"] = event["x_seq"]
                waiting["x_spec"] = add_counts(waiting["x_spec"], event["x_spec"])
                return
            self._waiting_delta[event["response_id"]] = event
        elif response_id is not None:
            self._waiting_delta.pop(response_id, None)
        self._events.append(event)
        self._changed.set()

    async def get(self) -> JsonObject:
        while not self._events:
            self._changed.clear()
            await self._changed.wait()
        event = self._events.popleft()
        if event["type"] == DELTA and self._waiting_delta.get(event["response_id"]) is event:
            del self._waiting_delta[event["response_id"]]
        return event
