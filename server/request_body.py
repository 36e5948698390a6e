"""The body of a request: JSON, of bounded size, there in time."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from .api_errors import ApiError

CLIENT_LEFT = 499  # never seen by anyone but the metrics


async def read_body(request: Request, limit: int, patience_s: float) -> bytes:
    """The request's body. Raises ApiError for one that is over `limit` bytes, of another type than JSON, or not there
    within `patience_s` seconds; ClientDisconnect when the client leaves before the end of it."""
    kind = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise ApiError(
            415,
            f"The body has the type {kind[:80]!r}; send JSON with the header Content-Type: application/json.",
            code="unsupported_media_type",
        )
    data = bytearray()
    size = 0
    try:
        async with asyncio.timeout(patience_s):
            async for part in request.stream():
                size += len(part)
                if size <= limit:
                    data += part
                elif size > 8 * limit:  # up to here the rest is read and dropped: so the client gets to read the answer
                    break
    except TimeoutError:
        raise ApiError(
            408,
            f"The body did not arrive within {patience_s:g} seconds; send the request again.",
            code="request_timeout",
            headers={"connection": "close"},
        ) from None
    if size > limit:
        raise ApiError(
            413, f"The body is larger than the {limit} bytes this server takes; send less.", code="body_too_large"
        )
    return bytes(data)


async def client_left(_: Request, __: Exception) -> Response:
    """Starlette's handler for ClientDisconnect."""
    return Response(status_code=CLIENT_LEFT)
