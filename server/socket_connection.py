"""What all WebSockets of the server share: who may open one, a reader that always receives, a writer, and the drain.

The reader waits for nothing but the next message: not for a prompt to be made, not for a client that does not read. A
message left lying would stop uvicorn from reading, and cancels and pongs would go unseen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from .api_errors import ApiError
from .context import Context
from .fields import JsonObject
from .outbox import Outbox
from .service import DEFAULT_MODEL_ALIAS
from .tasks import cancel_all

SUBPROTOCOL = "realtime"
_GOING_AWAY = (1001, "The server is shutting down; connect again in a moment.")
_STOPPED = (1012, "The server stopped; connect again in a moment.")
_TEXT_ONLY = (1003, "Binary frames are not supported; send JSON text.")
_NOT_READ = (1008, "You send on without reading the answers; read them, and connect again.")
_BROKEN = (1011, "The server failed; its log says why.")
_TURN_S = 0.002  # what one client's messages may take of the event loop at a time
_MESSAGE_CHARS = 1024  # what a message counts besides its own length, for the events that answer it

_log = logging.getLogger("paceline.server")

Close = tuple[int, str]
Spell = Callable[[JsonObject], JsonObject | None]


class Sockets:
    """The sockets of one app, whatever is spoken on them."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open = 0

    async def serve(self, websocket: WebSocket, talk: Callable[[WebSocket], Awaitable[None]]) -> None:
        """`talk` gets the socket accepted. Raises ApiError before accepting: the refusal is an HTTP answer."""
        self._context.refuse_when_draining()
        self._context.service.require_model(websocket.query_params.get("model") or DEFAULT_MODEL_ALIAS)
        if self._open >= self._context.settings.max_sockets:
            raise ApiError(
                503,
                f"{self._open} sockets are open, which is the most allowed; try again later.",
                code="too_many_sockets",
            )
        self._open += 1
        self._context.service.metrics.sockets.inc()
        try:
            with self._context.drain.occupied():
                offered = websocket.scope.get("subprotocols", ())
                await websocket.accept(subprotocol=SUBPROTOCOL if SUBPROTOCOL in offered else None)
                await talk(websocket)
        finally:
            self._open -= 1
            self._context.service.metrics.sockets.dec()


async def upgrade_required(_: Request) -> Response:
    """The answer to a plain GET at the address of a socket."""
    raise ApiError(
        426,
        "This address speaks WebSocket; open it with ws:// or wss://.",
        code="upgrade_required",
        headers={"upgrade": "websocket"},
    )


class Listener(Protocol):
    """What becomes of a client's messages."""

    @property
    def idle(self) -> bool:
        """Nothing runs or waits that will have something to say."""

    def receive(self, text: str) -> None:
        """One message; returns at once."""

    def refuse_new(self) -> None:
        """The server shuts down: what runs may end, nothing new begins."""


def as_it_is(event: JsonObject) -> JsonObject:
    return event


class SocketConnection:
    """One accepted socket."""

    def __init__(
        self, context: Context, websocket: WebSocket, listener: Listener, outbox: Outbox, spell: Spell = as_it_is
    ) -> None:
        """spell: an event as this client knows it, None for one it knows nothing of."""
        self._context = context
        self._websocket = websocket
        self._listener = listener
        self._outbox = outbox
        self._spell = spell
        self.client_closed: int | None = None  # the code, once the client has closed the socket
        self._sending = False

    async def run(self, *endings: Coroutine[Any, Any, Close | None]) -> Close | None:
        """Until the client leaves (None), breaks the rules, the server drains, or one of `endings` returns; returns how
        to close."""
        tasks = [asyncio.create_task(part) for part in (self._read(), self._write(), self._drain(), *endings)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            closes = [_close_of(task) for task in done]
        finally:
            await cancel_all(tasks)
        return None if None in closes else closes[0]

    async def close(self, close: Close | None) -> None:
        if close is not None:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it left meanwhile
                await self._websocket.close(*close)

    async def _read(self) -> Close | None:
        """Receives until the end; returns how to close, None when the client has left."""
        unanswered = 0
        turn = time.perf_counter()  # when others had theirs
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                self.client_closed = message.get("code")
                return None
            text = message.get("text")
            if text is None:
                return _TEXT_ONLY
            self._listener.receive(text)
            unanswered = unanswered + len(text) + _MESSAGE_CHARS if self._outbox.full else 0
            if unanswered > self._context.settings.max_unanswered:
                return _NOT_READ
            if unanswered or time.perf_counter() - turn > _TURN_S:
                await asyncio.sleep(0)  # thousands of messages can be there at once, and nobody else runs meanwhile
                turn = time.perf_counter()

    async def _write(self) -> Close | None:
        while True:
            event = self._spell(await self._outbox.get())
            if event is None:
                continue
            self._sending = True
            try:
                await self._websocket.send({"type": "websocket.send", "text": orjson.dumps(event).decode()})
            except (RuntimeError, WebSocketDisconnect):
                return None
            self._sending = False

    async def _drain(self) -> Close | None:
        """Once the server is told to stop: no new responses, those that run finish, then good-bye."""
        await self._context.drain.requested.wait()
        self._listener.refuse_new()
        while not self._listener.idle or len(self._outbox) or self._sending:
            await asyncio.sleep(0.02)
        return _STOPPED if self._context.drain.over else _GOING_AWAY


def _close_of(task: asyncio.Task[Close | None]) -> Close | None:
    error = task.exception()
    if error is None:
        return task.result()
    _log.error("A socket broke down", exc_info=error)
    return _BROKEN
