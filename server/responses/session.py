"""A socket of the Responses API without I/O: client events and engine pieces in, server events and commands out.

A lane is what `stream_id` names: its responses come one after the other, those of different lanes side by side.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from paceline.engine.errors import RequestError

from ..api_errors import ApiError, as_api_error
from ..committer import Piece
from ..fields import Fields, JsonObject, parse_object
from ..ids import NewId, random_id
from ..response import Reply
from ..session_outputs import Abort, Send
from ..session_request import handler_of
from ..token_logprobs import TokenNames
from .events import ResponseEvents
from .items import Item
from .lanes import Lanes, Run
from .request import ResponseRequest
from .steering import MAX_STEERS, Steer, read_steer, read_steer_items, refused
from .store import Stored, conversation, too_large

MAX_LANES = 64  # whose newest response is remembered
_LANE_CHARS = 64


@dataclass(frozen=True, slots=True)
class Begin:
    """Start generating; answer with `ResponsesSession.begin` or `ResponsesSession.refuse`. items: the conversation."""

    response_id: str
    request: ResponseRequest
    items: tuple[Item, ...]
    lane: str


Output = Send | Begin | Abort


class ResponsesSession:
    """Every response that was announced ends with exactly one last event, whatever happens first."""

    def __init__(
        self,
        *,
        model: str,
        names: TokenNames,
        read: Callable[[Fields], ResponseRequest],
        find: Callable[[str], Stored | None],
        keep: Callable[[Stored], None],
        max_items: int,
        new_id: NewId = random_id,
    ) -> None:
        """read: what a `response.create` asks for. find, keep: responses that outlive the socket."""
        self.accepting = True  # False while the server shuts down
        self._model = model
        self._names = names
        self._read = read
        self._find = find
        self._keep = keep
        self._max_items = max_items
        self._new_id = new_id
        self._lanes = Lanes()
        self._newest: OrderedDict[str | None, Stored] = OrderedDict()  # of each lane, also what is not to be stored
        self._pending: OrderedDict[str, list[Steer]] = OrderedDict()  # by the response whose calls wait for answers
        self._handlers: dict[str, Callable[[Fields], list[Output]]] = {
            "response.create": self._create,
            "response.cancel": self._cancel,
            "response.steer": self._steer,
        }

    @property
    def idle(self) -> bool:
        return self._lanes.idle

    def receive(self, text: str) -> list[Output]:
        """One message of the client. Mistakes become `error` events; the session goes on."""
        event_id: str | None = None
        lane: str | None = None
        try:
            fields = Fields(parse_object(text, "The message"))
            event_id = fields.string("event_id")
            lane = _read_lane(fields)
            return handler_of(fields, self._handlers)(fields)
        except (RequestError, ApiError) as error:
            return [_error(error, event_id, lane)]

    # The shell's answers to Begin, and what the engine made

    def begin(self, response_id: str, reply: Reply, items: tuple[Item, ...]) -> list[Output]:
        """Generation has started, with a prompt that holds `items`."""
        run = self._lanes.find(response_id)
        assert run is not None
        run.items = items
        return self._announce(run, reply)

    def refuse(self, response_id: str, error: Exception) -> list[Output]:
        """Generation could not start: an error, and no response was ever there."""
        run = self._lanes.find(response_id)
        assert run is not None
        self._lanes.end(run)
        return [_error(error, run.client_event, run.lane), *self._next()]

    def piece(self, response_id: str, piece: Piece) -> list[Output]:
        """What one step gave a response; ignored when it has ended."""
        run = self._lanes.find(response_id)
        if run is None or run.events is None:
            return []
        return self._told(run, run.events.piece(piece))

    def fail(self, response_id: str, message: str) -> list[Output]:
        """Generation broke down outside the engine; ignored when the response has ended."""
        run = self._lanes.find(response_id)
        if run is None or run.events is None:
            return []
        return self._told(run, run.events.fail(message))

    # Client events

    def _create(self, fields: Fields) -> list[Output]:
        if not self.accepting:
            raise ApiError(503, "The server is shutting down; connect again in a moment.", code="shutting_down")
        self._lanes.require_room()
        request = self._read(fields)
        run = Run(
            id=self._new_id("resp"),
            lane=_read_lane(fields),
            request=request,
            client_event=fields.string("event_id"),
        )
        self._lanes.add(run)
        return self._next()

    def _cancel(self, fields: Fields) -> list[Output]:
        """Of the response that is named, or of the one that runs in the lane."""
        wanted, lane = fields.string("response_id"), _read_lane(fields)
        if wanted is not None and self._lanes.has_ended(wanted):
            return []  # the cancel and the end passed each other: the client has its last event
        run = self._lanes.running_in(lane) if wanted is None else self._lanes.find(wanted)
        if run is None:
            raise ApiError(
                400,
                "There is no such response in progress, so nothing was cancelled.",
                param=None if wanted is None else "response_id",
                code="response_cancel_not_active",
            )
        announced: list[Output] = []
        if run.events is None:  # its prompt is still being made: it is announced only to end
            announced = self._announce(run, None)
        assert run.events is not None
        return [Abort(run.id), *announced, *self._told(run, run.events.cancel())]

    def _steer(self, fields: Fields) -> list[Output]:
        """Cuts the response off where it is and lets another go on from there with what the user said; a response that
        calls tools ends by itself, and the input waits for the answers."""
        wanted, raw = read_steer(fields)
        run = self._lanes.find(wanted)
        if run is None or run.events is None:
            ended = self._lanes.has_ended(wanted)
            code = "response_already_completed" if ended else "response_not_found"
            said = "has ended" if ended else "is not running on this socket"
            failure = refused(wanted, raw, code, f"The response {wanted[:80]!r} {said}; send response.create instead.")
            return [Send({**failure, "sequence_number": 0})]
        refusal: tuple[str, str] | None = None
        items: tuple[Item, ...] = ()
        try:
            items = read_steer_items(fields, self._max_items)
        except (RequestError, ApiError) as error:
            refusal = ("invalid_input", str(error))
        if not run.request.generate:
            refusal = ("steering_not_supported", "This response only prepares a prompt; send response.create instead.")
        elif len(run.steers) >= MAX_STEERS:
            refusal = ("too_many_pending_steers", f"{MAX_STEERS} inputs wait at this response; let it end first.")
        if refusal is not None:
            return _sent(run, run.events.send(refused(wanted, raw, *refusal)))
        steer = Steer(self._new_id("steer"), wanted, raw, items)
        run.steers.append(steer)
        accepted = _sent(run, run.events.send(steer.accepted()))
        if run.events.calls:
            return accepted
        return [*accepted, Abort(run.id), *self._told(run, run.events.steer())]

    # What follows

    def _announce(self, run: Run, reply: Reply | None) -> list[Output]:
        run.events = ResponseEvents(
            run.request, reply, id=run.id, model=self._model, names=self._names, new_id=self._new_id
        )
        return _sent(run, run.events.begin())

    def _told(self, run: Run, events: list[JsonObject]) -> list[Output]:
        """The events of a running response, and what its end brings."""
        out = _sent(run, events)
        if run.events is None or not run.events.ended:
            return out
        self._lanes.end(run)
        stored = Stored(run.events.body(), (*run.items, *run.events.items))
        self._remember(run.lane, stored)
        if run.request.store:
            self._keep(stored)
        if run.steers:
            out += self._steered(run, run.events)
        return out + self._next()

    def _remember(self, lane: str | None, stored: Stored) -> None:
        self._newest[lane] = stored
        self._newest.move_to_end(lane)
        while len(self._newest) > MAX_LANES or too_large([kept.items for kept in self._newest.values()]):
            self._newest.popitem(last=False)

    def _steered(self, run: Run, events: ResponseEvents) -> list[Output]:
        if events.status in ("cancelled", "failed"):
            lost = "The response was cancelled or failed before its input could be used; send response.create."
            return _sent(run, events.send(*(steer.failed("response_not_active", lost) for steer in run.steers)))
        if events.status == "completed" and events.calls:
            self._pending[run.id] = run.steers
            return _sent(run, events.send(*(steer.pending(events.calls) for steer in run.steers))) + self._overdue()
        successor = Run(
            id=self._new_id("resp"),
            lane=run.lane,
            request=run.request.following(run.id, tuple(item for steer in run.steers for item in steer.items)),
            client_event=run.client_event,
        )
        self._lanes.add_first(successor)
        return []

    @property
    def _waiting_inputs(self) -> list[tuple[Item, ...]]:
        return [steer.items for steers in self._pending.values() for steer in steers]

    def _overdue(self) -> list[Output]:
        """Input that waited longest is given back where too much waits."""
        out: list[Output] = []
        while len(self._pending) > MAX_LANES or too_large(self._waiting_inputs):
            _, steers = self._pending.popitem(last=False)
            for steer in steers:
                back = steer.failed(
                    "successor_creation_failed", "It waited for longer than other input that came since."
                )
                out.append(Send({**back, "sequence_number": 0}))
        return out

    def _next(self) -> list[Output]:
        """Begins what waits, in order, where its lane is free."""
        out: list[Output] = []
        while (run := self._lanes.next()) is not None:
            try:
                run.items = self._conversation(run.request)
            except ApiError as error:
                self._lanes.end(run)
                out.append(_error(error, run.client_event, run.lane))
            else:
                out.append(Begin(run.id, run.request, run.items, run.lane or ""))
        return out

    def _conversation(self, request: ResponseRequest) -> tuple[Item, ...]:
        previous = request.previous_response_id
        said = tuple(item for steer in self._pending.get(previous or "", ()) for item in steer.items)
        items = conversation((*said, *request.items), previous, self._find_here)
        self._pending.pop(previous or "", None)
        return items

    def _find_here(self, response_id: str) -> Stored | None:
        here = (stored for stored in self._newest.values() if stored.id == response_id)
        return next(here, None) or self._find(response_id)


def _read_lane(fields: Fields) -> str | None:
    lane = fields.string("stream_id")
    if lane is not None and not 0 < len(lane) <= _LANE_CHARS:
        fields.refuse("stream_id", f"must have 1 to {_LANE_CHARS} characters, got {len(lane)}.")
    return lane


def _sent(run: Run, events: list[JsonObject]) -> list[Output]:
    named: dict[str, Any] = {} if run.lane is None else {"stream_id": run.lane}
    return [Send({**event, **named}) for event in events]


def _error(error: Exception, client_event: str | None, lane: str | None) -> Send:
    answer = as_api_error(error)
    event: JsonObject = {"type": "error", "status": answer.status, **answer.body()}
    if client_event is not None:
        event["event_id"] = client_event
    if lane is not None:
        event["stream_id"] = lane
    return Send(event)
