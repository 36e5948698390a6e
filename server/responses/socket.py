"""WS /v1/responses: the async shell around `ResponsesSession`, with one task a response."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence
from functools import partial

from starlette.websockets import WebSocket

from paceline.engine.errors import PacelineError

from ..auth import caller_of
from ..context import Context
from ..fields import Fields
from ..generation import Generation
from ..outbox import Outbox
from ..parameters import Parameters
from ..session_outputs import Abort, Send
from ..socket_connection import SocketConnection, Sockets
from ..tasks import cancel_all
from .replies import start
from .request import ResponseRequest, read_request
from .session import MAX_LANES, Begin, Output, ResponsesSession
from .store import ResponseStore

_log = logging.getLogger("paceline.server")


class ResponseSockets:
    """The endpoint of one app."""

    def __init__(self, context: Context, sockets: Sockets, store: ResponseStore) -> None:
        self._context = context
        self._sockets = sockets
        self._store = store

    async def socket(self, websocket: WebSocket) -> None:
        """Raises ApiError before accepting: the refusal is an HTTP answer."""
        await self._sockets.serve(websocket, lambda accepted: _Talk(self._context, self._store, accepted).run())


class _Talk:
    """One socket: its session, its outbox, and the tasks of its responses. Implements `Listener`."""

    def __init__(self, context: Context, store: ResponseStore, websocket: WebSocket) -> None:
        self._context = context
        self._service = context.service
        self._websocket = websocket
        self._store = store
        self._caller = caller_of(websocket.scope)
        self._session = ResponsesSession(
            model=self._service.model_id,
            names=self._service.tokenizer,
            read=self._read,
            find=partial(store.find, self._caller.id),
            keep=partial(store.put, self._caller.id),
            max_items=context.settings.max_messages,
        )
        self._outbox = Outbox(context.settings.max_outbox)
        self._replies: dict[str, asyncio.Task[None]] = {}  # by response id
        self._running: dict[str, Generation] = {}  # by response id, those that have begun
        self._owner = f"responses-{uuid.uuid4().hex}"
        self._pins: dict[str, None] = {}  # owners, in the order their lanes were first used

    async def run(self) -> None:
        """Until the client leaves, breaks the rules, or the server drains. Nothing of it runs on afterwards."""
        connection = SocketConnection(self._context, self._websocket, self, self._outbox)
        try:
            close = await connection.run()
        finally:
            try:
                await cancel_all(self._replies.values())
            finally:
                for pin in self._pins:
                    self._service.streams.unpin(pin)
        await connection.close(close)

    @property
    def idle(self) -> bool:
        return self._session.idle

    def receive(self, text: str) -> None:
        self._perform(self._session.receive(text))

    def refuse_new(self) -> None:
        self._session.accepting = False

    def _read(self, fields: Fields) -> ResponseRequest:
        request = read_request(
            fields,
            self._service.limits,
            Parameters(priority="interactive"),
            find=partial(self._store.item, self._caller.id),
            max_items=self._context.settings.max_messages,
        )
        if request.model is not None:
            self._service.require_model(request.model)
        return request

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
                    if response_id in self._running:  # the engine hears of it now, not when the task gets its turn
                        self._running[response_id].abort()
                    self._replies[response_id].cancel()

    def _pin(self, lane: str) -> str:
        """The owner of a lane's cached blocks; of very many lanes the first let go of theirs."""
        owner = f"{self._owner}-{lane}"
        self._pins[owner] = None
        if len(self._pins) > MAX_LANES:
            oldest = next(iter(self._pins))
            del self._pins[oldest]
            self._service.streams.unpin(oldest)
        return owner

    async def _reply(self, begin: Begin, started: float) -> None:
        """One response from its prompt to its end; cancelled at any point of it when nobody wants it any more."""
        pin = self._pin(begin.lane)
        try:
            generation, items = await start(
                self._service,
                begin.request,
                begin.items,
                id=begin.response_id,
                caller=self._caller,
                started=started,
                pin=pin,
            )
        except Exception as error:
            if not isinstance(error, PacelineError):
                _log.exception("A response could not start")
            self._perform(self._session.refuse(begin.response_id, error))
            return
        self._running[begin.response_id] = generation
        try:
            async with generation:
                self._perform(self._session.begin(begin.response_id, generation, items))
                while (step := await generation.next()) is not None:
                    self._perform(self._session.piece(begin.response_id, step.piece))
        except Exception:
            _log.exception("A response broke down")
            self._perform(self._session.fail(begin.response_id, "The server failed; its log says why."))
        finally:
            del self._running[begin.response_id]
