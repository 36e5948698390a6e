"""GET /v1/models: what is served."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from .api_errors import json_response
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
