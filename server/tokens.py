"""POST /tokenize and /detokenize, in vLLM's shapes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from .api_errors import json_response
from .chat_request import read_messages
from .context import Context
from .fields import Fields, parse_object
from .parameters import Parameters, read_parameters
from .request_body import read_body
from .text_request import read_token_ids


class Tokens:
    """The endpoints of one app. Neither has a limit of its own: how long a text is, is what one asks."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._service = context.service

    async def tokenize(self, request: Request) -> Response:
        """{prompt, add_special_tokens} or {messages, tools, add_generation_prompt} -> {count, max_model_len, tokens,
        token_strs}."""
        fields = await self._read(request)
        strings = fields.boolean("return_token_strs")
        if fields.has("prompt") == fields.has("messages"):
            fields.refuse("prompt", "or messages must be there, and not both; send a text or a conversation.")
        if fields.has("messages"):
            messages = read_messages(fields, self._context.settings.max_messages)
            parameters = read_parameters(fields, self._service.limits, Parameters())
            opening = fields.boolean("add_generation_prompt") is not False
            ids = await self._service.tokens_of_messages(messages, parameters, opening=opening)
        else:
            document = fields.boolean("add_special_tokens") is not False
            ids = await self._service.tokens_of_text(fields.string("prompt") or "", document=document)
        body = {
            "count": len(ids),
            "max_model_len": self._service.context_length,
            "tokens": ids,
            "token_strs": await self._service.names_of(ids) if strings else None,
        }
        return json_response(body)

    async def detokenize(self, request: Request) -> Response:
        """{tokens} -> {prompt}: special tokens by name."""
        fields = await self._read(request)
        tokens = fields.array("tokens")
        if tokens is None:
            fields.refuse("tokens", "is missing; send a list of token ids.")
        ids = read_token_ids(fields, "tokens", tokens, self._service.limits.vocab_size)
        return json_response({"prompt": await self._service.text_of(ids)})

    async def _read(self, request: Request) -> Fields:
        """Raises RequestError or ApiError."""
        settings = self._context.settings
        data = await read_body(request, settings.max_body, settings.request_patience_s)
        fields = Fields(parse_object(data, "The request body"))
        self._service.require_model(fields.string("model"))
        return fields
