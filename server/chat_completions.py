"""POST /v1/chat/completions."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from .auth import caller_of
from .chat_request import parse_chat_request
from .chat_shape import ChatShape
from .context import Context
from .delivery import deliver
from .generation import Generation
from .reply_writer import ReplyForm
from .request_body import read_body


class ChatCompletions:
    """The endpoint of one app."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._service = context.service

    async def create(self, request: Request) -> Response:
        """Validation, template, tokens and length come before the first byte, so every refusal has its status."""
        started = time.perf_counter()
        self._context.refuse_when_draining()
        settings, service = self._context.settings, self._service
        data = await read_body(request, settings.max_body, settings.request_patience_s)
        asked = parse_chat_request(
            data, service.limits, max_choices=settings.max_choices, max_messages=settings.max_messages
        )
        service.require_model(asked.model)
        caller = caller_of(request.scope)
        shape = ChatShape(service.tokenizer)
        form = ReplyForm(service, "chatcmpl", shape, asked.delivery, figures=asked.parameters.figures)
        generation = Generation(
            service,
            id=form.id,
            prepared=await service.prepare(asked.messages, asked.parameters, caller),
            parameters=asked.parameters,
            protocol="prefill" if asked.prefill_only else "chat",
            n=asked.n,
            prefill_only=asked.prefill_only,
            started=started,
            caller=caller,
            prediction=await service.prediction(asked.prediction),
        )
        return await deliver(request, generation, form, settings.ping_interval_s)
