"""POST /v1/completions."""

from __future__ import annotations

import asyncio
import time

from starlette.requests import Request
from starlette.responses import Response

from .auth import caller_of
from .caller import Caller
from .context import Context
from .delivery import deliver
from .generation import Generation
from .parameters import Parameters
from .prepared import Prepared
from .reply_writer import ReplyForm
from .request_body import read_body
from .text_request import Prompt, parse_text_request
from .text_shape import TextShape


class TextCompletions:
    """The endpoint of one app."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._service = context.service

    async def create(self, request: Request) -> Response:
        """As chat completions: every refusal comes before the first byte."""
        started = time.perf_counter()
        self._context.refuse_when_draining()
        settings, service = self._context.settings, self._service
        data = await read_body(request, settings.max_body, settings.request_patience_s)
        asked = parse_text_request(
            data, service.limits, max_choices=settings.max_choices, max_replies=settings.max_replies
        )
        service.require_model(asked.model)
        caller = caller_of(request.scope)
        shape = TextShape(service.tokenizer)
        form = ReplyForm(service, "cmpl", shape, asked.delivery, figures=asked.parameters.figures)
        prepared, *further = [await self._prepare(prompt, asked.parameters, caller) for prompt in asked.prompts]
        generation = Generation(
            service,
            id=form.id,
            prepared=prepared,
            further=further,
            parameters=asked.parameters,
            protocol="completions",
            n=asked.n,
            started=started,
            caller=caller,
        )
        return await deliver(request, generation, form, settings.ping_interval_s)

    async def _prepare(self, prompt: Prompt, parameters: Parameters, caller: Caller) -> Prepared:
        """Raises RequestError or ApiError."""
        await asyncio.sleep(0)  # many short prompts take their time too: others get their turn between two
        return await self._service.prepare_text(prompt, parameters, caller)
