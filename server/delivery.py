"""A running reply as an HTTP answer: one body, or a stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from starlette.requests import Request
from starlette.responses import Response

from .api_errors import ApiError, json_response
from .fields import JsonObject
from .generation import Generation, Step
from .reply_writer import BodyWriter, ChunkWriter, ReplyForm
from .request_body import CLIENT_LEFT
from .sse import DONE, PING, EventStream, event, while_connected

_STEPS_PER_WRITE = 64  # a slow client gets up to this many steps' chunks in one write


async def deliver(request: Request, generation: Generation, form: ReplyForm, ping_interval_s: float) -> Response:
    """The answer in the form the client asked for; when the client leaves, the reply ends. Raises ApiError when the
    engine fails before the first byte."""
    if form.options.stream:
        return EventStream(_events(generation, ChunkWriter(generation, form), ping_interval_s), generation.abort)
    async with generation:
        body = await while_connected(request.receive, _collect(generation, BodyWriter(generation, form)))
    return Response(status_code=CLIENT_LEFT) if body is None else json_response(body)


async def _events(generation: Generation, writer: ChunkWriter, ping_interval_s: float) -> AsyncGenerator[bytes, None]:
    """The chunks of one reply; what is ready together leaves in one write."""
    ended = False
    while not ended:
        parts: list[bytes] = []
        try:
            step = await generation.next(ping_interval_s)
            while step is not None:
                _raise_failure(step)
                parts += map(event, writer.step(step))
                if len(parts) >= _STEPS_PER_WRITE or not generation.ready:
                    break
                step = await generation.next()
            ended = step is None
            if ended:
                parts += [*map(event, writer.end()), DONE]
        except TimeoutError:
            parts = [PING]
        except ApiError as error:
            parts += [event(error.body()), DONE]
            ended = True
        if parts:
            yield b"".join(parts)


async def _collect(generation: Generation, writer: BodyWriter) -> JsonObject:
    while (step := await generation.next()) is not None:
        _raise_failure(step)
        writer.step(step)
    return writer.body()


def _raise_failure(step: Step) -> None:
    """Raises ApiError when this step says that the engine gave the reply up."""
    if step.piece.finish == "error":
        raise ApiError(500, step.piece.error or "The engine failed on this request.", code="engine_error")
    if step.piece.finish == "abort":
        raise ApiError(503, "The server stopped before this reply was complete; send it again.", code="aborted")
