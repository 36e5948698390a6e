"""A running reply as an HTTP answer: one body, or a stream of events."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from .api_errors import ApiError, as_api_error, json_response
from .fields import JsonObject
from .generation import Generation, Step
from .reply_writer import BodyWriter, ChunkWriter, ReplyForm
from .request_body import CLIENT_LEFT
from .sse import DONE, PING, EventStream, event, while_connected

_log = logging.getLogger("paceline.server")

_STEPS_PER_WRITE = 64  # a slow client gets up to this many steps' chunks in one write


class EventWriter(Protocol):
    """What a stream of events says, as bytes."""

    def begin(self) -> list[bytes]:
        """Before the first step, which may take long."""

    def step(self, step: Step) -> list[bytes]:
        """Raises ApiError when the engine failed and nothing follows."""

    def end(self) -> list[bytes]:
        """After the last step."""

    def failed(self, error: ApiError) -> list[bytes]:
        """In place of the end."""


async def deliver(request: Request, generation: Generation, form: ReplyForm, ping_interval_s: float) -> Response:
    """The answer in the form the client asked for; when the client leaves, the reply ends. Raises ApiError when the
    engine fails before the first byte."""
    if form.options.stream:
        writer = _Chunks(ChunkWriter(generation, form))
        return EventStream(written(generation, writer, ping_interval_s), generation.abort)
    async with generation:
        body = await while_connected(request.receive, _collect(generation, BodyWriter(generation, form)))
    return Response(status_code=CLIENT_LEFT) if body is None else json_response(body)


async def written(generation: Generation, writer: EventWriter, ping_interval_s: float) -> AsyncGenerator[bytes, None]:
    """The events of one reply; what is ready together leaves in one write."""
    if opening := writer.begin():
        yield b"".join(opening)
    ended = False
    while not ended:
        parts: list[bytes] = []
        try:
            step = await generation.next(ping_interval_s)
            while step is not None:
                parts += writer.step(step)
                if len(parts) >= _STEPS_PER_WRITE or not generation.ready:
                    break
                step = await generation.next()
            ended = step is None
            if ended:
                parts += writer.end()
        except TimeoutError:
            parts = [PING]
        except ApiError as error:
            parts += writer.failed(error)
            ended = True
        except Exception as error:
            _log.exception("A reply broke down")
            parts += writer.failed(as_api_error(error))
            ended = True
        if parts:
            yield b"".join(parts)


class _Chunks:
    """Chunks as events, and the mark that no more come."""

    def __init__(self, writer: ChunkWriter) -> None:
        self._writer = writer

    def begin(self) -> list[bytes]:
        return []  # the role waits for the first text

    def step(self, step: Step) -> list[bytes]:
        raise_failure(step)
        return [event(chunk) for chunk in self._writer.step(step)]

    def end(self) -> list[bytes]:
        return [*map(event, self._writer.end()), DONE]

    def failed(self, error: ApiError) -> list[bytes]:
        return [event(error.body()), DONE]


async def _collect(generation: Generation, writer: BodyWriter) -> JsonObject:
    while (step := await generation.next()) is not None:
        raise_failure(step)
        writer.step(step)
    return writer.body()


def raise_failure(step: Step) -> None:
    """Raises ApiError when this step says that the engine gave the reply up."""
    if step.piece.finish == "error":
        raise ApiError(500, step.piece.error or "The engine failed on this request.", code="engine_error")
    if step.piece.finish == "abort":
        raise ApiError(503, "The server stopped before this reply was complete; send it again.", code="aborted")
