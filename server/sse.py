"""Server-sent events, and answers that end when the client does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .fields import JsonObject
from .tasks import cancel_all

T = TypeVar("T")

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"


def event(body: JsonObject) -> bytes:
    return b"data: " + orjson.dumps(body) + b"\n\n"


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`, or None when the client left first; `work` is cancelled and has ended by then."""
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await cancel_all((task, watch))


class EventStream(Response):
    """Sends what `source` yields, one write each, until it ends or the client leaves; then calls `release`, whatever
    happened: a generator that was never started runs no `finally` of its own."""

    media_type = "text/event-stream"

    def __init__(self, source: AsyncGenerator[bytes, None], release: Callable[[], None]) -> None:
        super().__init__(headers={"cache-control": "no-cache", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._source = source
        self._release = release

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await while_connected(receive, self._pump(send))
        finally:
            self._release()

    async def _pump(self, send: Send) -> None:
        async with aclosing(self._source) as writes:
            async for data in writes:
                await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
