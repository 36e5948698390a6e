"""Responses asked of the in-process client, and every event checked against the stock SDK's own models."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.responses_server_event import ResponsesServerEvent
from pydantic import TypeAdapter
from starlette.testclient import TestClient

RESPONSES = "/v1/responses"

_STREAM: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
_SOCKET: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)

# The events of a reply of words, in order; deltas side by side count once.
REPLY = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]


def validate(event: dict[str, Any], *, socket: bool = False) -> None:
    """Raises pydantic.ValidationError unless all that the SDK's types require is there, of the right type."""
    (_SOCKET if socket else _STREAM).validate_python(event, strict=True)
    if "response" in event:
        Response.model_validate(event["response"], strict=True)


def post(client: TestClient, **body: Any) -> Any:
    return client.post(RESPONSES, json={"input": "hi there", "max_output_tokens": 8, "seed": 1, **body})


def streamed(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    """The events of a stream: framed byte by byte as clients read them, numbered from 0, and each valid."""
    answer = post(client, stream=True, **body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    *frames, rest = answer.text.split("\n\n")
    assert rest == ""
    events = []
    for frame in frames:
        name, data = frame.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    check_stream(events)
    return events


def check_stream(events: list[dict[str, Any]], *, merged: bool = False) -> None:
    """What holds for the events of every response. merged: deltas may have been joined on their way to a slow client,
    and take the first one's number."""
    numbers = [event["sequence_number"] for event in events]
    assert numbers[0] == 0
    assert numbers == (sorted(set(numbers)) if merged else list(range(len(events))))
    for event in events:
        validate(event)
    last = events[-1]["response"]
    assert events[0]["type"] == "response.created"
    assert [e["type"] for e in events if e["type"] in LAST] == [events[-1]["type"]]
    assert text_of(events) == output_text(last)
    done = [e["item"] for e in events if e["type"] == "response.output_item.done"]
    assert done == last["output"]
    assert [e["output_index"] for e in events if e["type"] == "response.output_item.added"] == list(range(len(done)))


LAST = ("response.completed", "response.incomplete", "response.failed")


def text_of(events: Iterable[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


def output_text(response: dict[str, Any]) -> str:
    messages = [item for item in response["output"] if item["type"] == "message"]
    return "".join(part["text"] for message in messages for part in message["content"])


def order_of(events: Iterable[dict[str, Any]]) -> list[str]:
    """Types of events, with those side by side once."""
    kinds = [event["type"] for event in events]
    return [kind for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] != kind]
