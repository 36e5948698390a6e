"""The ASGI app: routes, and the order of what stands before them."""

from __future__ import annotations

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from .api_errors import ApiError, handle_error, json_response
from .auth import Gate, RequestId
from .chat_completions import ChatCompletions
from .client_secrets import Secrets
from .client_secrets_api import ClientSecrets
from .context import Context, Settings
from .keys import KeyRing
from .limits import RATE_HEADERS
from .models import Models, embeddings
from .page import ASSETS, page_routes
from .realtime import Realtime
from .request_body import client_left
from .responses.endpoint import Responses
from .responses.socket import ResponseSockets
from .responses.store import response_store
from .service import Service
from .socket_connection import Sockets, upgrade_required
from .text_completions import TextCompletions
from .tokens import Tokens


def create_app(service: Service, settings: Settings | None = None) -> Starlette:
    """The app for a service that was started; `app.state` holds its Context, keys and secrets.

    Order from the outside: request id, CORS (so that refusals carry its headers and preflights need no key), the gate
    (headers, Host, Origin, key), routes. Raises ConfigError for a file of keys that is missing or broken.
    """
    context = Context(service, settings or Settings())
    sockets = Sockets(context)
    store = response_store(context.settings)
    responses, response_sockets = Responses(context, store), ResponseSockets(context, sockets, store)
    models, tokens = Models(service), Tokens(context)
    realtime, status = Realtime(context, sockets), _Status(context)
    keys, secrets = KeyRing(context.settings.api_keys, context.settings.keys), Secrets()
    browser_keys = ClientSecrets(context, secrets)
    routes = [
        Route("/health", status.health, methods=["GET"]),
        Route("/ready", status.ready, methods=["GET"]),
        Route("/metrics", status.metrics, methods=["GET"]),
        Route("/v1/models", models.all, methods=["GET"]),
        Route("/v1/models/{model:path}", models.one, methods=["GET"]),
        Route("/v1/chat/completions", ChatCompletions(context).create, methods=["POST"]),
        Route("/v1/responses", responses.create, methods=["POST"]),
        Route("/v1/responses", upgrade_required, methods=["GET"]),
        WebSocketRoute("/v1/responses", response_sockets.socket),
        Route("/v1/responses/{response}", responses.retrieve, methods=["GET"]),
        Route("/v1/responses/{response}", responses.delete, methods=["DELETE"]),
        Route("/v1/responses/{response}/cancel", responses.cancel, methods=["POST"]),
        Route("/v1/realtime", upgrade_required, methods=["GET"]),
        Route("/v1/completions", TextCompletions(context).create, methods=["POST"]),
        Route("/v1/embeddings", embeddings, methods=["POST"]),
        Route("/tokenize", tokens.tokenize, methods=["POST"]),
        Route("/detokenize", tokens.detokenize, methods=["POST"]),
        WebSocketRoute("/v1/realtime", realtime.socket),
        Route("/v1/realtime/client_secrets", browser_keys.client_secrets, methods=["POST"]),
        Route("/v1/realtime/sessions", browser_keys.sessions, methods=["POST"]),
        *page_routes(),
    ]
    # Counted by name; names with a hash in them would count up new ones with every version of the page.
    paths = (route.path for route in routes if isinstance(route, Route))
    names = frozenset(path for path in paths if not path.startswith(ASSETS))
    cors = Middleware(
        CORSMiddleware,
        allow_origins=context.settings.allowed_origins,
        allow_methods=["DELETE", "GET", "POST"],
        allow_headers=["*"],
        expose_headers=["x-request-id", "retry-after", *RATE_HEADERS],
        max_age=600,
    )
    app = Starlette(
        routes=routes,
        middleware=[
            Middleware(RequestId),
            cors,
            Middleware(Gate, context=context, routes=names, keys=keys, secrets=secrets),
        ],
        exception_handlers={HTTPException: handle_error, ClientDisconnect: client_left},
    )
    app.router.redirect_slashes = False
    app.router.default = _nothing_here
    app.state.context = context
    app.state.keys, app.state.secrets = keys, secrets
    return app


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] in ("http", "websocket"):
        raise ApiError(404, "There is nothing at this address; see /v1/models for what is served.", code="not_found")


class _Status:
    """What a supervisor asks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._service = context.service

    async def health(self, request: Request) -> Response:
        """200 only while the engine really steps."""
        stats = self._service.loop.stats()
        healthy = self._service.healthy
        body = {
            "status": "ok" if healthy else "stuck",
            "steps": stats.steps,
            "last_step_age_s": round(stats.last_step_age_s, 3),
            "running": stats.running,
            "waiting": stats.waiting,
        }
        return json_response(body, 200 if healthy else 503)

    async def ready(self, request: Request) -> Response:
        """200 while new work is welcome: not before the engine runs, not while the server drains."""
        ready = self._context.ready
        return json_response({"ready": ready}, 200 if ready else 503)

    async def metrics(self, request: Request) -> Response:
        return Response(self._service.metrics.exposition(), headers={"content-type": CONTENT_TYPE_LATEST})
