"""GET /v1/models: what is served, and POST /v1/embeddings: what is not."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from .api_errors import ApiError, json_response
from .fields import JsonObject
from .service import Service


class Models:
    """The list of models, of which there is one, and that one by its name."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def all(self, request: Request) -> Response:
        return json_response({"object": "list", "data": [self._body()]})

    async def one(self, request: Request) -> Response:
        """Raises ApiError 404."""
        self._service.require_model(request.path_params["model"])
        return json_response(self._body())

    def _body(self) -> JsonObject:
        return {
            "id": self._service.model_id,
            "object": "model",
            "created": self._service.created,
            "owned_by": "paceline",
            "max_model_len": self._service.context_length,
            "speculators": list(self._service.speculators),
        }


async def embeddings(request: Request) -> Response:
    """Raises ApiError 400: with a 5xx the SDKs would try again, and with a 404 one would look for another address."""
    raise ApiError(
        400,
        "Embeddings are not made here, this server runs chat models; use /v1/chat/completions, or another server.",
        code="unsupported",
    )
