"""Refusals as clients get them, in HTTP answers and error events: the one JSON shape that OpenAI clients parse."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from paceline.engine.errors import OverloadedError, PacelineError, RequestError

from .fields import JsonObject

RETRY_AFTER_S = "1"


class ApiError(PacelineError):
    """An answer other than success, with its status."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str | None = None,  # noqa: A002 - the field's name on the wire
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.type = type or ("invalid_request_error" if status < 500 else "server_error")
        self.param = param
        self.code = code
        self.headers = dict(headers or {})
        if status in (429, 503):
            self.headers.setdefault("retry-after", RETRY_AFTER_S)

    def body(self) -> JsonObject:
        return {"error": {"message": str(self), "type": self.type, "param": self.param, "code": self.code}}

    def response(self) -> Response:
        return json_response(self.body(), self.status, self.headers)


def json_response(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), status, headers, media_type="application/json")


def as_api_error(error: Exception) -> ApiError:
    """The answer for any exception: the engine's refusals keep their sentence, a bug shows none of its details."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RequestError):
        return ApiError(400, str(error), param=error.param, code=error.code)
    if isinstance(error, OverloadedError):
        return ApiError(429, str(error), type="rate_limit_error", code="overloaded")
    if isinstance(error, HTTPException):
        return ApiError(error.status_code, _http_message(error), headers=error.headers)
    return ApiError(500, "The server failed to answer this request; its log says why.", code="internal_error")


def _http_message(error: HTTPException) -> str:
    if error.status_code == 404:
        return "There is nothing at this address; see /v1/models for what is served."
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "another method")
        return f"This address does not answer that method; use {allowed}."
    return error.detail or HTTPStatus(error.status_code).phrase


def not_supported(param: str, what: str) -> ApiError:
    return ApiError(
        400, f"{what} is not supported by this version; leave {param} out.", param=param, code="unsupported"
    )


async def handle_error(_: Request, error: Exception) -> Response:
    """Starlette's handler for expected errors."""
    return as_api_error(error).response()
