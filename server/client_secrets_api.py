"""`POST /v1/realtime/client_secrets` makes short-lived keys for browsers, `/v1/realtime/sessions` as in the beta."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from .api_errors import json_response
from .auth import caller_of
from .client_secrets import Secrets
from .context import Context
from .fields import Fields, parse_object
from .request_body import read_body
from .session_presets import checked

_MIN_S, _DEFAULT_S, _MAX_S = 10, 600, 7200  # as in OpenAI's interface
_BETA_S = 60
_MAX_BODY = 2**15  # bytes: each secret keeps its settings


class ClientSecrets:
    """The endpoints of one app."""

    def __init__(self, context: Context, secrets: Secrets) -> None:
        self._context = context
        self._secrets = secrets

    async def client_secrets(self, request: Request) -> Response:
        """`{expires_after: {anchor, seconds}, session}` -> `{value, expires_at, session}`."""
        body = await self._body(request)
        seconds = _seconds(body.child("expires_after") or Fields({}))
        asked = body.child("session") or Fields({}, "session")
        shown = checked(self._context.service, dict(asked.values))
        value, expires_at = self._secrets.make(caller_of(request.scope), seconds, dict(asked.values))
        return json_response({"value": value, "expires_at": expires_at, "session": shown})

    async def sessions(self, request: Request) -> Response:
        """The beta's form: settings in, the same with `client_secret: {value, expires_at}` out."""
        body = await self._body(request)
        asked = {key: value for key, value in body.values.items() if key != "client_secret"}
        shown = checked(self._context.service, asked)
        value, expires_at = self._secrets.make(caller_of(request.scope), _BETA_S, asked)
        return json_response({**shown, "client_secret": {"value": value, "expires_at": expires_at}})

    async def _body(self, request: Request) -> Fields:
        settings = self._context.settings
        self._context.refuse_when_draining()
        data = await read_body(request, min(settings.max_body, _MAX_BODY), settings.request_patience_s)
        return Fields(parse_object(data, "The body") if data else {})


def _seconds(expires: Fields) -> int:
    expires.choice("anchor", ("created_at",))
    return expires.integer("seconds", low=_MIN_S, high=_MAX_S) or _DEFAULT_S
