"""Settings a realtime session starts with, because they came with a client secret."""

from __future__ import annotations

from .conversation import Conversation
from .fields import JsonObject
from .service import Service
from .session import Session


def checked(service: Service, settings: JsonObject) -> JsonObject:
    """The settings as a session would show them: one that nobody is connected to tries them.

    Raises RequestError or ApiError, naming the field.
    """
    session = Session(
        model=service.model_id, limits=service.limits, conversation=Conversation(max_items=1, max_chars=1)
    )
    session.preset(settings)
    return session.body()
