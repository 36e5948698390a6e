"""One realtime socket. A reader that always receives and a writer; what is said belongs to its `Talk`.

The reader waits for nothing but the next message: not for a prompt to be made, not for a client that does not read. A
message left lying would stop uvicorn from reading, and cancels and pongs would go unseen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

import orjson
from starlette.websockets import WebSocket, WebSocketDisconnect

from .auth import caller_of, session_of
from .context import Context
from .fields import JsonObject
from .outbox import Outbox
from .realtime_dialect import dialect_of
from .resumables import Resumables
from .talk import Talk
from .tasks import cancel_all

_DONE = 1000
_GOING_AWAY = (1001, "The server is shutting down; connect again in a moment.")
_STOPPED = (1012, "The server stopped; connect again in a moment.")
_TEXT_ONLY = (1003, "Binary frames are not supported; send JSON text.")
_NOT_READ = (1008, "You send on without reading the answers; read them, and connect again.")
_BROKEN = (1011, "The server failed; its log says why.")
# An application's code: clients that reconnect by themselves do so after some of the standard ones, and would take
# the conversation back, from one connection to the other for ever.
_RESUMED_ELSEWHERE = (4409, "Another connection has resumed this session.")
_MESSAGE_CHARS = 1024  # what a message counts besides its own length, for the events that answer it

_log = logging.getLogger("paceline.server")

Close = tuple[int, str]


class Connection:
    """An accepted socket; its talk's Outlet."""

    def __init__(self, context: Context, websocket: WebSocket, resumables: Resumables) -> None:
        self._context = context
        self._websocket = websocket
        self._resumables = resumables
        self._dialect = dialect_of(websocket.headers, websocket.scope.get("subprotocols", ()))
        self._outbox = Outbox(context.settings.max_outbox)
        self._sending = False
        self._parting = False  # the client closed the socket as clients do that are done with it
        self._dismissed = asyncio.Event()
        self._talk = Talk(context, caller_of(websocket.scope), self, resumables)
        self._ending: set[asyncio.Task[None]] = set()  # of talks this socket has left for another

    def put(self, event: JsonObject) -> None:
        self._outbox.put(event)

    def move(self, talk: Talk) -> None:
        ending = asyncio.create_task(self._talk.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        self._talk = talk

    def dismiss(self) -> None:
        self._dismissed.set()

    async def run(self) -> None:
        """Until the client leaves, breaks the rules, goes on elsewhere, or the server drains."""
        self._talk.open(session_of(self._websocket.scope))
        tasks = [asyncio.create_task(part) for part in (self._read(), self._write(), self._drain(), self._dismissal())]
        close: Close | None = None
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            closes = [_close_of(task) for task in done]
            close = None if None in closes else closes[0]
        finally:
            await cancel_all(tasks)
            await self._resumables.leave(self._talk, self, parting=self._parting)
            if self._ending:
                await asyncio.wait(self._ending)
        if close is not None:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it left meanwhile
                await self._websocket.close(*close)

    async def _read(self) -> Close | None:
        """Receives until the end; returns how to close, None when the client has left."""
        unanswered = 0
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                self._parting = message.get("code") == _DONE
                return None
            text = message.get("text")
            if text is None:
                return _TEXT_ONLY
            if self._dismissed.is_set():
                return _RESUMED_ELSEWHERE
            self._talk.receive(text)
            unanswered = unanswered + len(text) + _MESSAGE_CHARS if self._outbox.full else 0
            if unanswered > self._context.settings.max_unanswered:
                return _NOT_READ
            if unanswered:
                await asyncio.sleep(0)  # many messages can come at once: the writer gets its turn between them

    async def _write(self) -> Close | None:
        while True:
            event = self._dialect.spell(await self._outbox.get())
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
        self._talk.refuse_new()
        while not self._talk.idle or len(self._outbox) or self._sending:
            await asyncio.sleep(0.02)
        return _STOPPED if self._context.drain.over else _GOING_AWAY

    async def _dismissal(self) -> Close | None:
        await self._dismissed.wait()
        return _RESUMED_ELSEWHERE


def _close_of(task: asyncio.Task[Close | None]) -> Close | None:
    error = task.exception()
    if error is None:
        return task.result()
    _log.error("A realtime socket broke down", exc_info=error)
    return _BROKEN
