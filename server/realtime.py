"""WS /v1/realtime: the async shell around `Session`, with one task a reply."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

import orjson
from starlette.websockets import WebSocket

from paceline.engine.errors import PacelineError

from .auth import caller_of, session_of
from .context import Context
from .conversation import Conversation
from .fields import JsonObject
from .generation import Generation
from .outbox import Outbox
from .session import Abort, Begin, Output, Send, Session
from .socket_connection import SocketConnection, Sockets
from .tasks import cancel_all

_log = logging.getLogger("paceline.server")


def new_session(context: Context) -> Session:
    """One with nobody connected to it yet."""
    service, settings = context.service, context.settings
    return Session(
        model=service.model_id,
        limits=service.limits,
        conversation=Conversation(
            max_items=settings.max_messages, max_chars=min(settings.max_conversation, service.max_chars)
        ),
    )


def presets(session: Session, settings: JsonObject) -> JsonObject:
    """Gives a session its settings before its client is there. Returns `session.updated`, or the `error`."""
    message = orjson.dumps({"type": "session.update", "session": settings}).decode()
    (answer,) = session.receive(message)
    assert isinstance(answer, Send)
    return answer.event


class Realtime:
    """The endpoint of one app."""

    def __init__(self, context: Context, sockets: Sockets) -> None:
        self._context = context
        self._sockets = sockets

    async def socket(self, websocket: WebSocket) -> None:
        """Raises ApiError before accepting: the refusal is an HTTP answer."""
        await self._sockets.serve(websocket, lambda accepted: _Connection(self._context, accepted).run())


class _Connection:
    def __init__(self, context: Context, websocket: WebSocket) -> None:
        settings = context.settings
        self._context = context
        self._service = context.service
        self._websocket = websocket
        self._caller = caller_of(websocket.scope)
        self._session = new_session(context)
        if given := session_of(websocket.scope):
            presets(self._session, given)
        self._outbox = Outbox(settings.max_outbox)
        self._replies: dict[str, asyncio.Task[None]] = {}  # by response id

    async def run(self) -> None:
        """Until the client leaves, breaks the rules, or the server drains. Nothing of it runs on afterwards."""
        self._perform(self._session.open())
        connection = SocketConnection(self._context, self._websocket, self, self._outbox)
        try:
            close = await connection.run()
        finally:
            await cancel_all(self._replies.values())
        await connection.close(close)

    @property
    def idle(self) -> bool:
        return self._session.idle

    def receive(self, text: str) -> None:
        self._perform(self._session.receive(text))

    def refuse_new(self) -> None:
        self._session.accepting = False

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
