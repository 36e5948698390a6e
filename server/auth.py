"""Who may come in: headers, Host, Origin and key are checked before any handler, for HTTP and WebSockets alike."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .api_errors import ApiError, as_api_error
from .caller import ANYONE, Caller
from .client_secrets import Secrets
from .context import Context
from .fields import JsonObject
from .keys import KeyRing
from .logs import log_event

KEY_PROTOCOL = "openai-insecure-api-key."  # browsers cannot set headers on a WebSocket: the key rides as a subprotocol
_GUARDED = ("/v1", "/metrics", "/tokenize", "/detokenize")
_FOR_SECRETS = ("/v1/realtime", "/v1/responses", "/v1/chat/completions")  # a short-lived key never makes another one
# In the scope:
_CALLER = "paceline.caller"
_SESSION = "paceline.session"
_REQUEST = "paceline.request_id"
_log = logging.getLogger("paceline.server")


def key_of(headers: Headers, subprotocols: Iterable[str] = ()) -> str | None:
    """The key a client sent, from the Authorization header or from its subprotocols."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and value:
        return value.strip()
    return next((p.removeprefix(KEY_PROTOCOL) for p in subprotocols if p.startswith(KEY_PROTOCOL)), None)


def caller_of(scope: Scope) -> Caller:
    """Whose request this is, as the gate found out."""
    caller: Caller = scope.get(_CALLER, ANYONE)
    return caller


def session_of(scope: Scope) -> JsonObject:
    """The settings that came with a short-lived key, for the session that is opened with it."""
    settings: JsonObject = scope.get(_SESSION, {})
    return settings


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

    def __init__(self, app: ASGIApp, context: Context, routes: frozenset[str], keys: KeyRing, secrets: Secrets) -> None:
        """`routes` are the paths that are counted by name; all others count together."""
        self._app = app
        self._context = context
        self._routes = routes
        self._keys = keys
        self._secrets = secrets
        self._sockets: Counter[str] = Counter()  # open now, by the caller's id

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
                headers = MutableHeaders(scope=message)
                for name, value in caller_of(scope).headers().items():
                    headers[name] = value
            await send(message)

        try:
            self._check(scope)
            with self._place(scope):
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
            self._say(scope, answer)
            if begun:
                raise
            await answer.response()(scope, receive, watched)

    @contextmanager
    def _place(self, scope: Scope) -> Iterator[None]:
        """One request's, or one socket's among those of its key. Raises ApiError 429."""
        if scope["type"] == "http":
            with self._context.drain.occupied():
                yield
            return
        caller, most = caller_of(scope).id, self._context.settings.max_sockets_per_key
        if caller and self._sockets[caller] >= most:
            raise ApiError(
                429,
                f"This key has {most} sockets open, which is the most allowed; close one first.",
                type="rate_limit_error",
                code="too_many_sockets",
            )
        self._sockets[caller] += 1
        try:
            yield
        finally:
            self._sockets[caller] -= 1
            self._sockets += Counter()  # forgets those that are at zero

    def _check(self, scope: Scope) -> None:
        """Raises ApiError."""
        settings = self._context.settings
        headers = Headers(scope=scope)
        if len(headers) > settings.max_headers:
            raise ApiError(
                431,
                f"The request has {len(headers)} header fields; send at most {settings.max_headers}.",
                code="headers_too_large",
            )
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
        self._identify(scope, key_of(headers, scope.get("subprotocols", ())))

    def _identify(self, scope: Scope, key: str | None) -> None:
        """Finds the caller. Raises ApiError 401 or 403."""
        self._keys.refresh()
        guarded = self._keys.guards and _is_guarded(scope["path"])
        secret = None if key is None else self._secrets.find(key)
        if secret is not None:
            if guarded and scope["path"] not in _FOR_SECRETS:
                raise ApiError(
                    403,
                    f"A client secret opens {', '.join(_FOR_SECRETS)} alone; use an API key here.",
                    code="client_secret_not_allowed",
                )
            scope[_CALLER], scope[_SESSION] = secret.caller, secret.session
            return
        if not self._keys.guards:
            scope[_CALLER] = self._keys.guest(key)
            return
        holder = None if key is None else self._keys.find(key)
        if holder is not None:
            scope[_CALLER] = holder
        elif guarded:
            said = "No API key was sent" if key is None else "The API key is not known here, or no more"
            raise ApiError(
                401,
                f"{said}; send a valid one as Authorization: Bearer KEY.",
                code="invalid_api_key",
                headers={"www-authenticate": "Bearer"},
            )

    def _say(self, scope: Scope, answer: ApiError) -> None:
        caller = caller_of(scope)
        log_event(
            "refused",
            request=scope.get(_REQUEST),
            caller=caller.id or None,
            name=caller.name or None,
            route=self._route(scope),
            status=answer.status,
            code=answer.code,
        )

    def _route(self, scope: Scope) -> str:
        return scope["path"] if scope["path"] in self._routes else "other"

    def _count(self, scope: Scope, status: int) -> None:
        self._context.service.metrics.answers.labels(self._route(scope), str(status)).inc()


def _is_guarded(path: str) -> bool:
    return any(path == root or path.startswith(f"{root}/") for root in _GUARDED)


class RequestId:
    """ASGI middleware, the outermost: a fresh `x-request-id` on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[_REQUEST] = f"req_{uuid.uuid4().hex}"

        async def named(message: Message) -> None:
            if message["type"].endswith(("http.response.start", "websocket.accept")):
                message.setdefault("headers", [])
                MutableHeaders(scope=message)["x-request-id"] = scope[_REQUEST]
            await send(message)

        await self._app(scope, receive, named)
