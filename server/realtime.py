"""WS /v1/realtime: the async shell around `Session`. One reader that always receives, one writer, one task a reply.

The reader waits for nothing but the next message: not for a prompt to be made, not for a client that does not read. A
message left lying would stop uvicorn from reading, and cancels and pongs would go unseen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from paceline.engine.errors import PacelineError

from .api_errors import ApiError
from .auth import caller_of, session_of
from .context import Context
from .conversation import Conversation
from .generation import Generation
from .outbox import Outbox
from .service import DEFAULT_MODEL_ALIAS
from .session import Abort, Begin, Output, Send, Session
from .session_presets import preset
from .tasks import cancel_all

SUBPROTOCOL = "realtime"
_GOING_AWAY = (1001, "The server is shutting down; connect again in a moment.")
_STOPPED = (1012, "The server stopped; connect again in a moment.")
_TEXT_ONLY = (1003, "Binary frames are not supported; send JSON text.")
_NOT_READ = (1008, "You send on without reading the answers; read them, and connect again.")
_BROKEN = (1011, "The server failed; its log says why.")
_MESSAGE_CHARS = 1024  # what a message counts besides its own length, for the events that answer it

_log = logging.getLogger("paceline.server")

Close = tuple[int, str]


class Realtime:
    """The endpoint of one app."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._open = 0

    async def plain_http(self, request: Request) -> Response:
        raise ApiError(
            426,
            "This address speaks WebSocket; open it with ws:// or wss://.",
            code="upgrade_required",
            headers={"upgrade": "websocket"},
        )

    async def socket(self, websocket: WebSocket) -> None:
        """Raises ApiError before accepting: the refusal is an HTTP answer."""
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
                await _Connection(self._context, websocket).run()
        finally:
            self._open -= 1
            self._context.service.metrics.sockets.dec()


class _Connection:
    def __init__(self, context: Context, websocket: WebSocket) -> None:
        settings = context.settings
        self._context = context
        self._service = context.service
        self._websocket = websocket
        self._caller = caller_of(websocket.scope)
        self._session = Session(
            model=self._service.model_id,
            limits=self._service.limits,
            conversation=Conversation(
                max_items=settings.max_messages, max_chars=min(settings.max_conversation, self._service.max_chars)
            ),
        )
        if given := session_of(websocket.scope):
            preset(self._session, given)
        self._outbox = Outbox(settings.max_outbox)
        self._sending = False
        self._replies: dict[str, asyncio.Task[None]] = {}  # by response id

    async def run(self) -> None:
        """Until the client leaves, breaks the rules, or the server drains. Nothing of it runs on afterwards."""
        self._perform(self._session.open())
        tasks = [asyncio.create_task(part) for part in (self._read(), self._write(), self._drain())]
        close: Close | None = None
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            closes = [_close_of(task) for task in done]
            close = None if None in closes else closes[0]
        finally:
            await cancel_all((*tasks, *self._replies.values()))
        if close is not None:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):  # it left meanwhile
                await self._websocket.close(*close)

    async def _read(self) -> Close | None:
        """Receives until the end; returns how to close, None when the client has left."""
        unanswered = 0
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            text = message.get("text")
            if text is None:
                return _TEXT_ONLY
            self._perform(self._session.receive(text))
            unanswered = unanswered + len(text) + _MESSAGE_CHARS if self._outbox.full else 0
            if unanswered > self._context.settings.max_unanswered:
                return _NOT_READ
            if unanswered:
                await asyncio.sleep(0)  # many messages can come at once: the writer gets its turn between them

    async def _write(self) -> Close | None:
        while True:
            event = await self._outbox.get()
            self._sending = True
            try:
                await self._websocket.send({"type": "websocket.send", "text": orjson.dumps(event).decode()})
            except (RuntimeError, WebSocketDisconnect):
                return None
            self._sending = False

    async def _drain(self) -> Close | None:
        """Once the server is told to stop: no new responses, those that run finish, then good-bye."""
        await self._context.drain.requested.wait()
        self._session.accepting = False
        while not self._session.idle or len(self._outbox) or self._sending:
            await asyncio.sleep(0.02)
        return _STOPPED if self._context.drain.over else _GOING_AWAY

    def _perform(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            match output:
                case Send(event):
                    self._outbox.put(event)
                case Begin(response_id):
                    task = asyncio.create_task(self._reply(output, time.perf_counter()))
                    self._replies[response_id] = task
                    task.add_done_callback(lambda _, name=response_id: self._replies.pop(name))  # type: ignore[misc]
                case Abort(response_id):
                    self._replies[response_id].cancel()

    async def _reply(self, begin: Begin, started: float) -> None:
        """One response from its prompt to its end; cancelled at any point of it when nobody wants it any more."""
        try:
            generation = Generation(
                self._service,
                id=begin.response_id,
                prepared=await self._service.prepare(begin.messages, begin.parameters),
                parameters=begin.parameters,
                protocol="realtime",
                started=started,
                caller=self._caller,
            )
        except Exception as error:
            if not isinstance(error, PacelineError):
                _log.exception("A response could not start")
            self._perform(self._session.refuse(begin.response_id, error))
            return
        try:
            async with generation:
                self._perform(self._session.begin(begin.response_id, generation))
                while (step := await generation.next()) is not None:
                    self._perform(self._session.piece(begin.response_id, step.piece))
        except Exception:
            _log.exception("A response broke down")
            self._perform(self._session.fail(begin.response_id, "The server failed; its log says why."))


def _close_of(task: asyncio.Task[Close | None]) -> Close | None:
    error = task.exception()
    if error is None:
        return task.result()
    _log.error("A realtime socket broke down", exc_info=error)
    return _BROKEN
