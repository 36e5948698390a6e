"""Settings a realtime session starts with, because they came with a client secret."""

from __future__ import annotations

import orjson

from .api_errors import ApiError
from .conversation import Conversation
from .fields import JsonObject
from .service import Service
from .session import Session
from .session_outputs import Send


def preset(session: Session, settings: JsonObject) -> JsonObject:
    """Gives them to a session before its client is there. Returns `session.updated`, or the `error`."""
    message = orjson.dumps({"type": "session.update", "session": settings}).decode()
    return next(output.event for output in session.receive(message) if isinstance(output, Send))


def checked(service: Service, settings: JsonObject) -> JsonObject:
    """The settings as a session would show them: one that nobody is connected to tries them. Raises ApiError."""
    session = Session(
        model=service.model_id, limits=service.limits, conversation=Conversation(max_items=1, max_chars=1)
    )
    event = preset(session, settings)
    if event["type"] == "error":
        error = event["error"]
        raise ApiError(400, error["message"], param=error["param"], code=error["code"])
    shown: JsonObject = event["session"]
    return shown
