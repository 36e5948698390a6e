"""The events of one reply, kept so that a client whose connection broke can have those it missed again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import orjson

from paceline.engine.errors import RequestError

from .api_errors import ApiError
from .fields import Fields, JsonObject
from .step_counts import without_trees

RESUME = "x_response.resume"


@dataclass(frozen=True, slots=True)
class Resume:
    """A client on a new socket wants what came after the delta with `starting_after`; 0: everything."""

    response_id: str
    starting_after: int


def read_resume(fields: Fields) -> Resume:
    """Raises RequestError, naming the field."""
    response_id = fields.string("response_id")
    if response_id is None:
        fields.refuse("response_id", "is missing; name the response to go on with.")
    return Resume(response_id, fields.integer("starting_after", low=0) or 0)


class Replay:
    """The newest events of a reply, within bounds: when they are reached the oldest go.

    Deltas are kept as they were made, never merged: a client may have any of them as its last. Only the trees of a
    trace, which would take most of the room, are left out. Events are not changed and must not be by whoever gets them.
    """

    def __init__(self, max_events: int, max_bytes: int) -> None:
        self._max_events = max_events
        self._max_bytes = max_bytes
        self._events: deque[tuple[JsonObject, int]] = deque()  # with their size on the wire
        self._bytes = 0
        self._last = 0  # x_seq of the newest delta
        # Those who have the delta with this x_seq miss nothing but what is kept; None when nobody can know that.
        self._complete_after: int | None = 0

    def put(self, event: JsonObject) -> None:
        if "steps" in event.get("x_spec", ()):
            event = {**event, "x_spec": without_trees(event["x_spec"])}
        size = len(orjson.dumps(event))
        self._events.append((event, size))
        self._bytes += size
        self._last = _seq(event) or self._last
        while self._events and (len(self._events) > self._max_events or self._bytes > self._max_bytes):
            lost, size = self._events.popleft()
            self._bytes -= size
            self._complete_after = _seq(lost)

    def after(self, seq: int) -> list[JsonObject]:
        """What came after the delta with that x_seq, everything for 0.

        Raises RequestError for a delta there has not been, ApiError (code `resume_gone`) when too much is forgotten.
        """
        if seq > self._last:
            raise RequestError(
                f"starting_after is {seq}, and the last delta so far is {self._last}; send the x_seq of one you have.",
                param="starting_after",
            )
        events = [event for event, _ in self._events]
        if seq == self._complete_after:
            return events
        for index, event in enumerate(events, 1):
            if _seq(event) == seq:
                return events[index:]
        raise ApiError(
            410,
            "Some events after that delta are no longer kept; resume after a later one, or create the response again.",
            param="starting_after",
            code="resume_gone",
        )


def _seq(event: JsonObject) -> int | None:
    """The number of a delta; other events may name one without being one."""
    return event.get("x_seq") if "delta" in event else None
