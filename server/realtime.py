"""WS /v1/realtime."""

from __future__ import annotations

from starlette.websockets import WebSocket

from .context import Context
from .realtime_connection import Connection
from .resumables import Resumables
from .socket_connection import Sockets


class Realtime:
    """The endpoint of one app."""

    def __init__(self, context: Context, sockets: Sockets) -> None:
        self._context = context
        self._sockets = sockets
        self._resumables = Resumables(context)

    async def socket(self, websocket: WebSocket) -> None:
        """Raises ApiError before accepting: the refusal is an HTTP answer."""
        await self._sockets.serve(websocket, lambda it: Connection(self._context, it, self._resumables).run())
