"""Chat completions asked of the in-process client."""

from __future__ import annotations

import json
from typing import Any

from starlette.testclient import TestClient

HI = [{"role": "user", "content": "hi there"}]
CHAT = "/v1/chat/completions"


def post(client: TestClient, **body: Any) -> Any:
    return client.post(CHAT, json={"messages": HI, "max_tokens": 8, "seed": 1, **body})


def chunks(client: TestClient, **body: Any) -> list[dict[str, Any]]:
    """The parsed events of a stream, whose framing is checked byte by byte."""
    answer = post(client, stream=True, **body)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, last, rest = answer.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    assert all(event.startswith("data: {") and "\n" not in event for event in events)
    return [json.loads(event.removeprefix("data: ")) for event in events]


def text_of(events: list[dict[str, Any]], index: int = 0) -> str:
    choices = [choice for event in events for choice in event["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
