"""What a client says to a response that is running, and what becomes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..fields import Fields, JsonObject
from .items import Item, Message, read_input
from .output_items import Calls

MAX_STEERS = 16  # that wait at one response


@dataclass(frozen=True, slots=True)
class Steer:
    """Accepted input. raw: as the client sent it, to be given back where it cannot be used."""

    id: str
    response_id: str
    raw: str | list[Any]
    items: tuple[Item, ...]

    def accepted(self) -> JsonObject:
        return {"type": "response.steer.accepted", "steer": {"id": self.id, "previous_response_id": self.response_id}}

    def pending(self, calls: Sequence[Calls]) -> JsonObject:
        """It waits for the answers to `calls`, and for the request that brings them."""
        return {
            "type": "response.steer.pending",
            "steer": {"id": self.id, "previous_response_id": self.response_id},
            "reason": "waiting_for_required_input",
            "required_input": [call.stub() for call in calls],
        }

    def failed(self, code: str, message: str) -> JsonObject:
        return refused(self.response_id, self.raw, code, message, self.id)


def refused(response_id: str, raw: str | list[Any], code: str, message: str, steer_id: str | None = None) -> JsonObject:
    """The event that gives input back. steer_id: None where it was never accepted."""
    steer: JsonObject = {"previous_response_id": response_id, "input": raw}
    if steer_id is not None:
        steer["id"] = steer_id
    error = {"type": "invalid_request_error", "code": code, "message": message}
    return {"type": "response.steer.failed", "steer": steer, "error": error}


def read_steer(fields: Fields) -> tuple[str, str | list[Any]]:
    """The response that is meant, and the input unread. Raises RequestError where there is nothing to give back."""
    response_id = fields.string("previous_response_id")
    if response_id is None:
        fields.refuse("previous_response_id", "is missing; name the response to steer.")
    raw = fields.values.get("input")
    if not isinstance(raw, str | list) or not raw:
        fields.refuse("input", "is missing; send a string or a list with at least one user message.")
    return response_id, raw


def read_steer_items(fields: Fields, max_items: int) -> tuple[Item, ...]:
    """Users' messages alone. Raises RequestError or ApiError."""
    items = tuple(read_input(fields, lambda _: None, max_items))
    if not all(isinstance(item, Message) and item.role == "user" for item in items):
        fields.refuse("input", "may hold messages of the role user alone; send other items with response.create.")
    return items
