"""One realtime socket; what is said on it belongs to its `Talk`."""

from __future__ import annotations

import asyncio

from starlette.websockets import WebSocket

from .auth import caller_of, session_of
from .context import Context
from .fields import JsonObject
from .outbox import Outbox
from .realtime_dialect import dialect_of
from .resumables import Resumables
from .socket_connection import Close, SocketConnection
from .talk import Talk

_DONE = 1000  # as clients close that are done with a socket
# An application's code: clients that reconnect by themselves do so after some of the standard ones, and would take
# the conversation back, from one connection to the other for ever.
_RESUMED_ELSEWHERE = (4409, "Another connection has resumed this session.")


class Connection:
    """An accepted socket; its talk's Outlet. Implements `Listener`."""

    def __init__(self, context: Context, websocket: WebSocket, resumables: Resumables) -> None:
        self._websocket = websocket
        self._resumables = resumables
        self._outbox = Outbox(context.settings.max_outbox)
        dialect = dialect_of(websocket.headers, websocket.scope.get("subprotocols", ()))
        self._socket = SocketConnection(context, websocket, self, self._outbox, dialect.spell)
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

    @property
    def idle(self) -> bool:
        return self._talk.idle

    def receive(self, text: str) -> None:
        if not self._dismissed.is_set():
            self._talk.receive(text)

    def refuse_new(self) -> None:
        self._talk.refuse_new()

    async def run(self) -> None:
        """Until the client leaves, breaks the rules, goes on elsewhere, or the server drains."""
        self._talk.open(session_of(self._websocket.scope))
        try:
            close = await self._socket.run(self._dismissal())
        finally:
            await self._resumables.leave(self._talk, self, parting=self._socket.client_closed == _DONE)
            if self._ending:
                await asyncio.wait(self._ending)
        await self._socket.close(close)

    async def _dismissal(self) -> Close | None:
        await self._dismissed.wait()
        return _RESUMED_ELSEWHERE
