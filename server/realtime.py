"""WS /v1/realtime: the async shell around `Session`. One reader that always receives, one writer, one task a reply."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from paceline.engine.errors import PacelineError

from .context import Context
from .conversation import Conversation
from .errors_http import ApiError
from .generation import Generation
from .openai import refuse_when_draining, require_model
from .outbox import Outbox
from .session import Abort, Begin, Output, Send, Session
from .tasks import cancel_all

SUBPROTOCOL = "realtime"
_GOING_AWAY = (1001, "The server is shutting down; connect again in a moment.")
_TEXT_ONLY = (1003, "Binary frames are not supported; send JSON text.")
_BROKEN = (1011, "The server failed; its log says why.")
_CLOSE_PATIENCE_S = 5.0

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
        refuse_when_draining(self._context)
        require_model(self._context.service, websocket.query_params.get("model") or "default")
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
        self._session = Session(
            model=self._service.model_id,
            limits=self._service.limits,
            conversation=Conversation(max_items=settings.max_messages, max_chars=settings.max_conversation),
        )
        self._outbox = Outbox(settings.max_outbox)
        self._sending = False
        self._generations: dict[str, Generation] = {}
        self._replies: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client leaves, breaks the rules, or the server drains. Nothing of it runs on afterwards."""
        await self._perform(self._session.open())
        tasks = [asyncio.create_task(part) for part in (self._read(), self._write(), self._drain())]
        close: Close | None = None
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            closes = [_close_of(task) for task in done]
            close = None if None in closes else closes[0]
        finally:
            for generation in self._generations.values():
                generation.abort()
            await cancel_all((*tasks, *self._replies))
        if close is not None:
            try:
                async with asyncio.timeout(_CLOSE_PATIENCE_S):
                    await self._websocket.close(*close)
            except (TimeoutError, RuntimeError, WebSocketDisconnect):
                pass  # it left meanwhile, or does not read: the transport's patience ends it

    async def _read(self) -> Close | None:
        """Receives until the end; returns how to close, None when the client has left."""
        while True:
            message = await self._websocket.receive()
            if message["type"] == "websocket.disconnect":
                return None
            text = message.get("text")
            if text is None:
                return _TEXT_ONLY
            await self._perform(self._session.receive(text))
            await self._outbox.room()

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
        return _GOING_AWAY

    async def _perform(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            if isinstance(output, Begin):
                await self._begin(output)
            else:
                self._emit(output)

    def _emit(self, output: Send | Abort) -> None:
        if isinstance(output, Send):
            self._outbox.put(output.event)
        elif (generation := self._generations.pop(output.response_id, None)) is not None:
            generation.abort()

    async def _begin(self, begin: Begin) -> None:
        started = time.perf_counter()
        try:
            generation = Generation(
                self._service,
                id=begin.response_id,
                prompt=await self._service.prompt(begin.messages),
                parameters=begin.parameters,
                protocol="realtime",
                priority="interactive",
                started=started,
            )
        except Exception as error:
            if not isinstance(error, PacelineError):
                _log.exception("A response could not start")
            await self._perform(self._session.refuse(begin.response_id, error))
            return
        self._generations[begin.response_id] = generation
        await self._perform(self._session.begin(begin.response_id, generation))
        task = asyncio.create_task(self._reply(begin.response_id, generation))
        self._replies.add(task)
        task.add_done_callback(self._replies.discard)

    async def _reply(self, response_id: str, generation: Generation) -> None:
        try:
            async with generation:
                while (step := await generation.next()) is not None:
                    await self._perform(self._session.piece(response_id, step.piece))
        except Exception:
            _log.exception("A response broke down")
            await self._perform(self._session.fail(response_id, "The server failed; its log says why."))
        finally:
            self._generations.pop(response_id, None)


def _close_of(task: asyncio.Task[Close | None]) -> Close | None:
    error = task.exception()
    if error is None:
        return task.result()
    _log.error("A realtime socket broke down", exc_info=error)
    return _BROKEN
