"""What a realtime session wants done: events for its client, and commands for whoever runs it."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import JsonObject
from .parameters import Parameters


@dataclass(frozen=True, slots=True)
class Send:
    """A server event for the client."""

    event: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Start generating; answer with `Session.begin` or `Session.refuse`.

    prediction: what the client expects the reply to be like; "" for nothing. in_conversation: the reply goes on in the
    session's conversation; False for one beside it. resumable: its events may be asked for again, on another socket.
    """

    response_id: str
    messages: list[JsonObject]
    parameters: Parameters
    prediction: str
    in_conversation: bool
    resumable: bool


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop generating at once."""

    response_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Warm:
    """What the next prompt will begin with; the newest holds. pending: a user's text that is still growing, None when
    nobody is writing. The parameters say how the prompt is rendered."""

    messages: list[JsonObject]
    pending: str | None
    parameters: Parameters


Output = Send | Begin | Abort | Warm


def send(*events: JsonObject) -> list[Output]:
    return [Send(event) for event in events]
