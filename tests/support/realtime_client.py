"""A realtime session over a real WebSocket: what a client sends, and what it waits for."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import websockets.exceptions
from service import LiveServer
from websockets.sync.client import ClientConnection, connect


def address(live: LiveServer) -> str:
    return f"ws://127.0.0.1:{live.port}/v1/realtime"


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def say(connection: ClientConnection, kind: str, **fields: Any) -> None:
    connection.send(json.dumps({"type": kind, **fields}))


def events_until(connection: ClientConnection, kind: str) -> list[dict[str, Any]]:
    events = []
    while not events or events[-1]["type"] != kind:
        events.append(json.loads(connection.recv(timeout=30)))
    return events


def closing_code(connection: ClientConnection) -> int:
    """Reads whatever still comes, to the end."""
    with contextlib.suppress(websockets.exceptions.ConnectionClosed):  # raised for codes other than 1000 and 1001
        for _ in connection:
            pass
    assert connection.close_code is not None
    return connection.close_code


@contextlib.contextmanager
def chatting(live: LiveServer, **options: Any) -> Iterator[ClientConnection]:
    """A socket whose conversation has one user message."""
    with connect(address(live), proxy=None, **options) as connection:
        say(connection, "conversation.item.create", item=user("hi there"))
        events_until(connection, "conversation.item.done")
        yield connection
