"""POST /v1/responses, and what can be asked of a response afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from ..api_errors import ApiError, json_response
from ..auth import caller_of
from ..caller import Caller
from ..context import Context
from ..delivery import raise_failure, written
from ..fields import Fields, JsonObject, parse_object
from ..generation import Generation, Step
from ..ids import random_id
from ..parameters import Parameters
from ..request_body import CLIENT_LEFT, read_body
from ..sse import EventStream, event, while_connected
from .events import ResponseEvents
from .items import Item
from .replies import start
from .request import ResponseRequest, read_request
from .store import ResponseStore, Stored, conversation, not_found


class Responses:
    """The HTTP endpoints of one app."""

    def __init__(self, context: Context, store: ResponseStore) -> None:
        self._context = context
        self._service = context.service
        self._store = store
        self._running: dict[tuple[str, str], _Running] = {}  # by caller and response id

    async def create(self, request: Request) -> Response:
        """Validation, template, tokens and length come before the first byte, so every refusal has its status."""
        started = time.perf_counter()
        self._context.refuse_when_draining()
        settings, caller = self._context.settings, caller_of(request.scope)
        data = await read_body(request, settings.max_body, settings.request_patience_s)
        asked = read_request(
            Fields(parse_object(data, "The request body")),
            self._service.limits,
            Parameters(),
            find=partial(self._store.item, caller.id),
            max_items=settings.max_messages,
        )
        if asked.model is not None:
            self._service.require_model(asked.model)
        items = conversation(asked.items, asked.previous_response_id, partial(self._store.find, caller.id))
        running = await self._start(asked, items, caller, started)
        if asked.stream:
            return EventStream(written(running.generation, running, settings.ping_interval_s), running.release)
        try:
            body = await while_connected(request.receive, running.collect())
        finally:
            running.release()
        return Response(status_code=CLIENT_LEFT) if body is None else json_response(body)

    async def retrieve(self, request: Request) -> Response:
        key = _key(request)
        running = self._running.get(key)
        return json_response(self._stored(key).body if running is None else running.events.body())

    async def delete(self, request: Request) -> Response:
        caller, response_id = _key(request)
        if not self._store.remove(caller, response_id):
            raise not_found(response_id)
        return json_response({"id": response_id, "object": "response", "deleted": True})

    async def cancel(self, request: Request) -> Response:
        """Ends a running response; whoever reads it gets its last event."""
        key = _key(request)
        running = self._running.get(key)
        if running is None:
            self._stored(key)
            raise ApiError(409, "This response has ended, so nothing was cancelled.", code="response_cancel_not_active")
        running.cancel()
        return json_response(running.events.body())

    def _stored(self, key: tuple[str, str]) -> Stored:
        stored = self._store.find(*key)
        if stored is None:
            raise not_found(key[1])
        return stored

    async def _start(self, asked: ResponseRequest, items: tuple[Item, ...], caller: Caller, started: float) -> _Running:
        response_id = random_id("resp")
        generation, kept = await start(self._service, asked, items, id=response_id, caller=caller, started=started)
        events = ResponseEvents(
            asked, generation, id=response_id, model=self._service.model_id, names=self._service.tokenizer
        )

        def ended() -> None:
            self._running.pop((caller.id, response_id), None)
            if asked.store and events.ended:
                self._store.put(caller.id, Stored(events.body(), (*kept, *events.items)))

        running = _Running(generation, events, ended)
        self._running[caller.id, response_id] = running
        return running


class _Running:
    """A response on its way to one client. Implements `EventWriter`."""

    def __init__(self, generation: Generation, events: ResponseEvents, ended: Callable[[], None]) -> None:
        """ended: called once, when the response has ended or its client has left."""
        self.generation = generation
        self.events = events
        self._ended: Callable[[], None] | None = ended
        self._waiting = events.begin()  # events that no step brings

    def begin(self) -> list[bytes]:
        return self.end()

    def step(self, step: Step) -> list[bytes]:
        out = self._take() + self.events.piece(step.piece)
        if self.events.ended:
            self._end()
        return [_framed(body) for body in out]

    def end(self) -> list[bytes]:
        return [_framed(body) for body in self._take()]

    def failed(self, error: ApiError) -> list[bytes]:
        return [_framed(body) for body in self.events.fail(str(error))]

    def cancel(self) -> None:
        self._waiting += self.events.cancel()
        self.release()

    def release(self) -> None:
        """Ends what still runs; harmless at the end."""
        self.generation.abort()
        self._end()

    async def collect(self) -> JsonObject:
        """The whole response. Raises ApiError when the engine failed."""
        while (step := await self.generation.next()) is not None:
            raise_failure(step)
            self.step(step)
        return self.events.body()

    def _take(self) -> list[JsonObject]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


def _key(request: Request) -> tuple[str, str]:
    return caller_of(request.scope).id, request.path_params["response"]


def _framed(body: JsonObject) -> bytes:
    return f"event: {body['type']}\n".encode() + event(body)
