"""Who may come in: Host, Origin and key checks before any handler, for HTTP and WebSockets alike."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import uuid
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .api_errors import ApiError, as_api_error
from .caller import ANYONE, Anyone, Caller
from .context import Context

KEY_PROTOCOL = "openai-insecure-api-key."  # browsers cannot set headers on a WebSocket: the key rides as a subprotocol
_GUARDED = ("/v1", "/metrics")
_CALLER = "paceline.caller"  # in the scope
_log = logging.getLogger("paceline.server")


def key_of(headers: Headers, subprotocols: Iterable[str] = ()) -> str | None:
    """The key a client sent, from the Authorization header or from its subprotocols."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        return value.strip()
    return next((p.removeprefix(KEY_PROTOCOL) for p in subprotocols if p.startswith(KEY_PROTOCOL)), None)


class _KeyHolder(Anyone):
    def __init__(self, key: str) -> None:
        self.id = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def caller_of(scope: Scope) -> Caller:
    """Whose request this is, as the gate found out."""
    caller: Caller = scope.get(_CALLER, ANYONE)
    return caller


def key_is_known(sent: str | None, keys: Iterable[str]) -> bool:
    """Compares with every key in constant time."""
    given = (sent or "").encode()
    matches = [hmac.compare_digest(given, key.encode()) for key in keys]
    return any(matches)


def host_is_allowed(host: str, allowed: Iterable[str]) -> bool:
    """Names other than localhost must be listed: a page whose DNS name was pointed at this machine is kept out.

    Plain addresses are harmless, because nobody can point an address elsewhere.
    """
    name = (urlsplit(f"//{host}").hostname or "").lower() if _parses(host) else ""
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return any(entry == "*" or entry.lower() in (name, host.lower()) for entry in allowed)
    return True


def origin_is_allowed(origin: str | None, host: str, allowed: Iterable[str]) -> bool:
    """No Origin means no browser; the server's own page is always welcome."""
    if origin is None:
        return True
    if _parses(origin) and urlsplit(origin).netloc.lower() == host.lower() != "":
        return True
    return any(entry in ("*", origin) for entry in allowed)


def _parses(url: str) -> bool:
    try:
        return urlsplit(url if "//" in url else f"//{url}") is not None
    except ValueError:
        return False


class Gate:
    """ASGI middleware: the checks, the answer to whatever a handler raises, and the counting of answers."""

    def __init__(self, app: ASGIApp, context: Context, routes: frozenset[str]) -> None:
        """`routes` are the paths that are counted by name; all others count together."""
        self._app = app
        self._context = context
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            if message["type"].endswith("http.response.start"):
                self._count(scope, message["status"])
            await send(message)

        try:
            self._check(scope)
            if scope["type"] == "http":
                with self._context.drain.occupied():
                    await self._app(scope, receive, watched)
            else:
                await self._app(scope, receive, watched)
        except asyncio.CancelledError:
            if not self._context.drain.over:
                raise
            if not begun:  # uvicorn gave up waiting for it, and would log each of these as an error of ours
                stopped = ApiError(503, "The server stopped before it could answer; try again.", code="shutting_down")
                await stopped.response()(scope, receive, watched)
        except Exception as error:
            answer = as_api_error(error)
            if answer.status == 500 and not isinstance(error, ApiError):
                _log.exception("Unexpected error on %s", scope["path"], exc_info=error)
            if begun:
                raise
            await answer.response()(scope, receive, watched)

    def _check(self, scope: Scope) -> None:
        """Raises ApiError."""
        settings = self._context.settings
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not host_is_allowed(host, settings.allowed_hosts):
            raise ApiError(
                403, f"The host {host[:80]!r} is not served here; allow it with --allow-host.", code="host_not_allowed"
            )
        origin = headers.get("origin")
        if not origin_is_allowed(origin, host, settings.allowed_origins):
            raise ApiError(
                403,
                f"Pages from {(origin or '')[:80]!r} may not use this server; allow them with --allow-origin.",
                code="origin_not_allowed",
            )
        key = key_of(headers, scope.get("subprotocols", ()))
        if settings.api_keys and _is_guarded(scope["path"]) and not key_is_known(key, settings.api_keys):
            said = "No API key was sent" if key is None else "The API key is not known here"
            raise ApiError(
                401,
                f"{said}; send a valid one as Authorization: Bearer KEY.",
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )
        if key is not None:
            scope[_CALLER] = _KeyHolder(key)

    def _count(self, scope: Scope, status: int) -> None:
        route = scope["path"] if scope["path"] in self._routes else "other"
        self._context.service.metrics.answers.labels(route, str(status)).inc()


def _is_guarded(path: str) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in _GUARDED)


class RequestId:
    """ASGI middleware, the outermost: a fresh `x-request-id` on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def named(message: Message) -> None:
            if message["type"].endswith(("http.response.start", "websocket.accept")):
                message.setdefault("headers", [])
                MutableHeaders(scope=message)["x-request-id"] = f"req_{uuid.uuid4().hex}"
            await send(message)

        await self._app(scope, receive, named)
