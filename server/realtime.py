"""WS /v1/realtime: who may open a socket, and how many."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from .api_errors import ApiError
from .context import Context
from .realtime_connection import Connection
from .resumables import Resumables
from .service import DEFAULT_MODEL_ALIAS

SUBPROTOCOL = "realtime"


class Realtime:
    """The endpoint of one app."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._resumables = Resumables(context)
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
                await Connection(self._context, websocket, self._resumables).run()
        finally:
            self._open -= 1
            self._context.service.metrics.sockets.dec()
