"""POST /v1/chat/completions and GET /v1/models."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator
from dataclasses import replace

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from paceline.engine.request import TokenLogprob

from .api_errors import ApiError, json_response
from .auth import caller_of
from .chat_request import ChatRequest, parse_chat_request
from .context import Context
from .fields import JsonObject
from .generation import Generation, Step
from .service import Service
from .sse import DONE, PING, EventStream, event, while_connected
from .step_counts import StepCounts
from .wire import ChatWire

_STEPS_PER_WRITE = 64  # a slow client gets up to this many steps' chunks in one write
_CLIENT_LEFT = 499  # never seen by anyone but the metrics


class OpenAI:
    """The HTTP endpoints; each instance serves one app."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._service = context.service

    async def models(self, request: Request) -> Response:
        return json_response({"object": "list", "data": [_model_body(self._service)]})

    async def model(self, request: Request) -> Response:
        self._service.require_model(request.path_params["model"])
        return json_response(_model_body(self._service))

    async def chat_completions(self, request: Request) -> Response:
        """Validation, template, tokens and length come before the first byte, so every refusal has its status."""
        started = time.perf_counter()
        self._context.refuse_when_draining()
        try:
            data = await read_body(request, self._context.settings.max_body, self._context.settings.request_patience_s)
        except ClientDisconnect:
            return Response(status_code=_CLIENT_LEFT)
        settings = self._context.settings
        asked = parse_chat_request(
            data, self._service.limits, max_choices=settings.max_choices, max_messages=settings.max_messages
        )
        if asked.model is not None:
            self._service.require_model(asked.model)
        if asked.prefill_only:
            asked = replace(asked, n=1)
        reply_id = f"chatcmpl-{uuid.uuid4().hex}"
        generation = Generation(
            self._service,
            id=reply_id,
            prepared=await self._service.prepare(asked.messages, asked.parameters),
            parameters=asked.parameters,
            protocol="prefill" if asked.prefill_only else "chat",
            n=asked.n,
            prefill_only=asked.prefill_only,
            started=started,
            caller=caller_of(request.scope),
            prediction=() if asked.prefill_only else await self._service.prediction(asked.prediction),
        )
        wire = ChatWire(
            id=reply_id,
            created=int(time.time()),
            model=self._service.model_id,
            fingerprint=self._service.fingerprint,
            tokenizer=self._service.tokenizer,
        )
        if asked.stream:
            return EventStream(self._events(generation, wire, asked), generation.abort)
        async with generation:
            body = await while_connected(request.receive, _collect(generation, wire, asked))
        return Response(status_code=_CLIENT_LEFT) if body is None else json_response(body)

    async def _events(self, generation: Generation, wire: ChatWire, asked: ChatRequest) -> AsyncGenerator[bytes, None]:
        """The chunks of one reply; what is ready together leaves in one write."""
        chunks = _Chunks(generation, wire, asked)
        ended = False
        while not ended:
            parts: list[bytes] = []
            try:
                step = await generation.next(self._context.settings.ping_interval_s)
                while step is not None:
                    parts += chunks.step(step)
                    if len(parts) >= _STEPS_PER_WRITE or not generation.ready:
                        break
                    step = await generation.next()
                ended = step is None
                if ended:
                    parts += chunks.end()
            except TimeoutError:
                parts = [PING]
            except ApiError as error:
                parts += [event(error.body()), DONE]
                ended = True
            if parts:
                yield b"".join(parts)


class _Chunks:
    """Which chunks a step becomes: role with the first text, one content chunk per step, the finish alone."""

    def __init__(self, generation: Generation, wire: ChatWire, asked: ChatRequest) -> None:
        self._generation = generation
        self._wire = wire
        self._asked = asked
        self._counts = [StepCounts() for _ in generation.requests]
        self._opened: set[int] = set()

    def step(self, step: Step) -> list[bytes]:
        """Raises ApiError when the engine failed."""
        raise_failure(step)
        if self._asked.prefill_only:
            return []
        index, piece = step.index, step.piece
        counts = self._counts[index]
        counts.add(piece)
        has_content = bool(piece.text or piece.logprobs)
        out: list[bytes] = []
        if index not in self._opened and (has_content or piece.finish):
            self._opened.add(index)
            out.append(self._chunk(index, {"role": "assistant", "content": ""}))
        if has_content:
            spec = {"x_spec": counts.take()} if self._asked.parameters.telemetry else {}
            chunk = self._wire.chunk(
                index, {"content": piece.text}, logprobs=piece.logprobs, extra={**self._usage(), **spec}
            )
            out.append(event(chunk))
        if piece.finish is not None:
            spec = {"x_spec": counts.take()} if self._asked.parameters.telemetry and counts.pending else {}
            seed = self._generation.requests[index].sampling.seed
            out.append(self._chunk(index, {}, finish=piece.finish, extra={"seed": seed, **spec}))
        return out

    def end(self) -> list[bytes]:
        if self._asked.include_usage or self._asked.prefill_only:
            usage = self._generation.usage()
            extra = {"metrics": self._generation.metrics(), "seed": self._generation.seed}
            return [event(self._wire.usage_chunk(usage, extra)), DONE]
        return [DONE]

    def _chunk(
        self, index: int, delta: JsonObject, finish: str | None = None, extra: JsonObject | None = None
    ) -> bytes:
        return event(self._wire.chunk(index, delta, finish=finish, extra={**self._usage(), **(extra or {})}))

    def _usage(self) -> JsonObject:
        return {"usage": self._generation.usage()} if self._asked.continuous_usage else {}


async def _collect(generation: Generation, wire: ChatWire, asked: ChatRequest) -> JsonObject:
    """The whole reply as one body. Raises ApiError when the engine failed."""
    finishes = [""] * asked.n
    logprobs: list[list[TokenLogprob]] = [[] for _ in range(asked.n)]
    while (step := await generation.next()) is not None:
        raise_failure(step)
        logprobs[step.index] += step.piece.logprobs or ()
        finishes[step.index] = step.piece.finish or finishes[step.index]
    wants_logprobs = asked.parameters.sampling.logprobs is not None
    choices = [
        wire.choice(i, generation.committers[i].text, finishes[i], logprobs[i] if wants_logprobs else None)
        for i in range(asked.n)
    ]
    usage = generation.usage()
    return wire.completion([] if asked.prefill_only else choices, usage, generation.metrics(), generation.seed)


def raise_failure(step: Step) -> None:
    """Raises ApiError when this step says that the engine gave the reply up."""
    if step.piece.finish == "error":
        raise ApiError(500, step.piece.error or "The engine failed on this request.", code="engine_error")
    if step.piece.finish == "abort":
        raise ApiError(503, "The server stopped before this reply was complete; send it again.", code="aborted")


async def read_body(request: Request, limit: int, patience_s: float) -> bytes:
    """The request's body. Raises ApiError for one that is over `limit` bytes, of another type than JSON, or not there
    within `patience_s` seconds."""
    kind = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise ApiError(
            415,
            f"The body has the type {kind[:80]!r}; send JSON with the header Content-Type: application/json.",
            code="unsupported_media_type",
        )
    data = bytearray()
    size = 0
    try:
        async with asyncio.timeout(patience_s):
            async for part in request.stream():
                size += len(part)
                if size <= limit:
                    data += part
                elif size > 8 * limit:  # up to here the rest is read and dropped: so the client gets to read the answer
                    break
    except TimeoutError:
        raise ApiError(
            408,
            f"The body did not arrive within {patience_s:g} seconds; send the request again.",
            code="request_timeout",
            headers={"connection": "close"},
        ) from None
    if size > limit:
        raise ApiError(
            413, f"The body is larger than the {limit} bytes this server takes; send less.", code="body_too_large"
        )
    return bytes(data)


def _model_body(service: Service) -> JsonObject:
    return {
        "id": service.model_id,
        "object": "model",
        "created": service.created,
        "owned_by": "paceline",
        "max_model_len": service.context_length,
        "speculators": list(service.speculators),
    }
