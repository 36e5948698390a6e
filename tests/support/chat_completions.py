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
    return events_of(post(client, stream=True, **body))


def events_of(answer: Any) -> list[dict[str, Any]]:
    """The parsed events of a stream, whose framing is checked byte by byte; a machine that stalls sends pings."""
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    *events, last, rest = answer.text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    events = [event for event in events if event != ": ping"]
    assert all(event.startswith("data: {") and "\n" not in event for event in events)
    return [json.loads(event.removeprefix("data: ")) for event in events]


def text_of(events: list[dict[str, Any]], index: int = 0) -> str:
    choices = [choice for event in events for choice in event["choices"] if choice["index"] == index]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def choice_of(events: list[dict[str, Any]], index: int = 0) -> dict[str, Any]:
    """What the chunks of one choice add up to: its choice in a whole body. Their order is checked on the way."""
    own = [choice for event in events for choice in event["choices"] if choice["index"] == index]
    assert own[0]["delta"]["role"] == "assistant"
    assert [choice["finish_reason"] for choice in own[:-1]] == [None] * (len(own) - 1)
    assert (own[-1]["delta"], own[-1]["logprobs"]) == ({}, None)
    message: dict[str, Any] = {"content": None, "refusal": None}
    logprobs: list[Any] = []
    for choice in own:
        delta = choice["delta"]
        logprobs += (choice["logprobs"] or {"content": []})["content"]
        for key in ("role", "content", "reasoning_content"):
            if delta.get(key) is not None:
                message[key] = (message.get(key) or "") + delta[key]
        for fragment in delta.get("tool_calls", []):
            calls = message.setdefault("tool_calls", [])
            assert len(delta["tool_calls"]) == 1
            if "id" in fragment:
                assert fragment["index"] == len(calls)
                calls.append({key: fragment[key] for key in ("id", "type", "function")})
            else:
                assert fragment == {
                    "index": len(calls) - 1,
                    "function": {"arguments": fragment["function"]["arguments"]},
                }
                calls[-1]["function"]["arguments"] += fragment["function"]["arguments"]
    if not message["content"]:  # null or "" on the way: an empty chunk may bring logprobs
        message["content"] = None if "tool_calls" in message else ""
    told = {"content": logprobs, "refusal": None} if logprobs else None
    return {"index": index, "message": message, "logprobs": told, "finish_reason": own[-1]["finish_reason"]}
