"""The two spellings of the Realtime API. Sessions speak with the names of the GA interface; on its way into the socket
of a beta client an event gets the name and body that such a client knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .fields import JsonObject
from .response_output import DELTA, TEXT

BETA_SUBPROTOCOL = "openai-beta.realtime-v1"
BETA_HEADER = ("openai-beta", "realtime=v1")


@dataclass(frozen=True, slots=True)
class Dialect:
    """names: of events that are called otherwise, None for one that is not sent. bodies: how what stands under a key
    of an event is spelt."""

    names: Mapping[str, str | None]
    bodies: Mapping[str, Callable[[JsonObject], JsonObject]]

    def spell(self, event: JsonObject) -> JsonObject | None:
        """The event as it is sent; None for one this dialect does not have."""
        kind = event["type"]
        name = self.names.get(kind, kind)
        if name is None:
            return None
        spelt = {key: self.bodies[key](value) if key in self.bodies else value for key, value in event.items()}
        return {**spelt, "type": name}


def _renamed(names: Mapping[str, str]) -> Callable[[JsonObject], JsonObject]:
    return lambda body: {names.get(key, key): value for key, value in body.items()}


def _beta_item(item: JsonObject) -> JsonObject:
    if "content" not in item:
        return item
    content = [{**part, "type": part["type"].replace("output_text", "text")} for part in item["content"]]
    return {**item, "content": content}


def _beta_response(response: JsonObject) -> JsonObject:
    body = _renamed({"output_modalities": "modalities"})(response)
    return {**body, "output": [_beta_item(item) for item in body["output"]]}


def _beta_session(session: JsonObject) -> JsonObject:
    body = _renamed({"output_modalities": "modalities", "max_output_tokens": "max_response_output_tokens"})(session)
    del body["type"], body["voice"]  # the beta's voice is a name, and its clients insist on that
    return body


GA = Dialect({}, {})
BETA = Dialect(
    {
        DELTA: "response.text.delta",
        f"{TEXT}.done": "response.text.done",
        "conversation.item.added": "conversation.item.created",
        "conversation.item.done": None,
    },
    {"item": _beta_item, "response": _beta_response, "session": _beta_session},
)


def dialect_of(headers: Mapping[str, str], subprotocols: Iterable[str]) -> Dialect:
    """What a client that opens its socket like this speaks; header names in small letters."""
    key, value = BETA_HEADER
    asked = (part.strip() for part in headers.get(key, "").split(","))
    return BETA if value in asked or BETA_SUBPROTOCOL in subprotocols else GA
