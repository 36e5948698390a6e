"""One conversation as the server holds it: a session, its running replies, and where their events go.

A talk can outlive its socket: replies that were created with `x_resume` go on without one.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from paceline.engine.errors import PacelineError

from .api_errors import ApiError
from .caller import Caller
from .context import Context
from .conversation import Conversation
from .fields import Fields, JsonObject
from .generation import Generation
from .pacing import Pacer, pacer_for
from .replay import RESUME, Replay, read_resume
from .resumables import Resumables
from .session import Session
from .session_outputs import Abort, Begin, Output, Send, Warm
from .tasks import cancel_all
from .voice_track import VoiceTrack
from .warming import Warming

_log = logging.getLogger("paceline.server")
_ITEM_EVENTS = frozenset(("conversation.item.added", "conversation.item.done"))


class Outlet(Protocol):
    """One socket, as its talk sees it."""

    def put(self, event: JsonObject) -> None:
        """Sends, some time."""

    def move(self, talk: Talk) -> None:
        """What the client says from now on is for `talk`, whose events follow."""

    def dismiss(self) -> None:
        """The talk goes on elsewhere: nothing is sent any more but a good-bye."""


@dataclass(slots=True)
class _Reply:
    """One response, from Begin to its last event."""

    started: float  # time.perf_counter() when it was asked for
    pacer: Pacer
    track: VoiceTrack
    replay: Replay | None  # None: it ends with its socket
    items: set[str] = field(default_factory=set)  # those it writes
    task: asyncio.Task[None] | None = None
    generation: Generation | None = None  # once it has begun
    ended: float | None = None  # as `started`

    def owns(self, response_id: str, event: JsonObject) -> bool:
        if event["type"] in _ITEM_EVENTS:
            return event["item"]["id"] in self.items
        named = event.get("response_id") or event.get("response", {}).get("id")
        if named == response_id and event["type"] == "response.output_item.added":
            self.items.add(event["item"]["id"])
        return bool(named == response_id)

    def stop(self) -> None:
        """The engine hears of it now, not when the task gets its turn."""
        if self.generation is not None:
            self.generation.abort()
        assert self.task is not None
        self.task.cancel()


class Talk:
    """Used on the event loop only. Every method but `close` returns at once."""

    def __init__(self, context: Context, caller: Caller, outlet: Outlet, resumables: Resumables) -> None:
        settings = context.settings
        self._context = context
        self._service = context.service
        self._caller = caller
        self._outlet: Outlet | None = outlet
        self._resumables = resumables
        self._conversation = Conversation(
            max_items=settings.max_messages, max_chars=min(settings.max_conversation, self._service.max_chars)
        )
        self._session = Session(
            model=self._service.model_id,
            limits=self._service.limits,
            conversation=self._conversation,
            shell={RESUME: self._resume},
        )
        self._warming = Warming(
            self._service, caller, self._session.id, lambda *ready: self._perform(self._session.prefilled(*ready))
        )
        self._replies: dict[str, _Reply] = {}  # by response id: those that run, and the last that can be resumed
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def caller_id(self) -> str:
        return self._caller.id

    @property
    def outlet(self) -> Outlet | None:
        """None while the talk is parked."""
        return self._outlet

    @property
    def idle(self) -> bool:
        """No response runs."""
        return self._session.idle

    def open(self, given: JsonObject | None = None) -> None:
        """given: settings the session starts with."""
        if given:
            self._session.preset(given)
        self._perform(self._session.open())

    def refuse_new(self) -> None:
        """No response can be created any more: the server shuts down."""
        self._session.accepting = False

    def receive(self, text: str) -> None:
        """One message of the client, whatever it is."""
        self._flush()
        self._perform(self._session.receive(text))

    def _flush(self) -> None:
        """A cancel finds all text that there is."""
        for response_id, reply in list(self._replies.items()):
            for piece in reply.pacer.flush():
                self._perform(self._session.piece(response_id, piece))

    # A socket comes and goes

    def attach(self, outlet: Outlet, missed: Sequence[JsonObject]) -> None:
        """From now on events go to `outlet`, first the missed ones; who had them before is dismissed."""
        former, self._outlet = self._outlet, outlet
        if former is not None:
            former.dismiss()
        for event in missed:
            outlet.put(event)

    def detach(self, parting: bool) -> bool:
        """The client has gone. True when something of it can be resumed; whatever cannot ends.

        parting: it said good-bye, and has all it wants of replies that have ended."""
        self._outlet = None
        self._forget_old(time.perf_counter() - (0.0 if parting else self._context.settings.resume_s))
        for response_id, reply in list(self._replies.items()):
            if reply.replay is None:
                self._flush()
                self._perform(self._session.cancel(response_id))
        return any(reply.replay is not None for reply in self._replies.values())

    async def close(self) -> None:
        """Nothing of it runs on afterwards, and nobody can resume it."""
        self._outlet = None
        for response_id in self._replies:
            self._resumables.forget(response_id)
        try:
            await cancel_all(self._tasks)
        finally:
            await self._warming.close()

    def missed(self, response_id: str, starting_after: int) -> list[JsonObject]:
        """Raises as `Replay.after` does; KeyError for a response that is not registered."""
        replay = self._replies[response_id].replay
        assert replay is not None
        return replay.after(starting_after)

    def _resume(self, fields: Fields) -> list[Output]:
        wanted = read_resume(fields)
        if self._conversation.last is not None or not self._session.idle:
            raise ApiError(
                409,
                "This session has a conversation of its own, which resuming would replace; "
                "open a new connection and resume before anything else.",
                code="conversation_not_empty",
            )
        self._context.refuse_when_draining()
        talk, missed = self._resumables.find(self._caller.id, wanted)
        outlet, self._outlet = self._outlet, None
        assert outlet is not None
        if talk is not self:
            outlet.move(talk)
        talk.attach(outlet, missed)
        return []

    # What the session wants done

    def _perform(self, outputs: Sequence[Output]) -> None:
        for output in outputs:
            match output:
                case Send(event):
                    self._send(event)
                case Begin():
                    self._begin(output)
                case Abort(response_id):
                    self._replies[response_id].stop()
                case Warm():
                    self._warming.want(output)

    def _begin(self, begin: Begin) -> None:
        settings, voice = self._context.settings, begin.parameters.voice
        reply = _Reply(
            started=time.perf_counter(),
            pacer=pacer_for(voice),
            track=VoiceTrack(voice),
            replay=Replay(settings.max_replay_events, settings.max_replay) if begin.resumable else None,
        )
        self._replies[begin.response_id] = reply
        if begin.in_conversation:
            self._warming.rest()
        if begin.resumable:
            self._resumables.add(begin.response_id, self)
        reply.task = asyncio.create_task(self._run(begin, reply))
        self._tasks.add(reply.task)
        reply.task.add_done_callback(self._tasks.discard)

    def _send(self, event: JsonObject) -> None:
        for response_id, reply in self._replies.items():
            if reply.ended is None and reply.owns(response_id, event):
                break
        else:
            self._put(event)
            return
        now = time.perf_counter()
        for told in reply.track.tell(event, (now - reply.started) * 1000):
            if reply.replay is not None:
                reply.replay.put(told)
            self._put(told)
        if event["type"] == "response.done":
            reply.ended = now
            if reply.replay is None:
                del self._replies[response_id]
            else:
                self._forget_old(now)

    def _put(self, event: JsonObject) -> None:
        if self._outlet is not None:
            self._outlet.put(event)

    def _forget_old(self, before: float) -> None:
        """What ended before then is kept for nobody any more."""
        for response_id, reply in list(self._replies.items()):
            if reply.ended is not None and reply.ended < before:
                self._drop(response_id)

    def _drop(self, response_id: str) -> None:
        del self._replies[response_id]
        self._resumables.forget(response_id)

    async def _run(self, begin: Begin, reply: _Reply) -> None:
        """One response from its prompt to its end; cancelled at any point of it when nobody wants it any more."""
        response_id = begin.response_id
        try:
            generation = Generation(
                self._service,
                id=response_id,
                prepared=await self._service.prepare(begin.messages, begin.parameters, self._caller),
                parameters=begin.parameters,
                protocol="realtime",
                started=reply.started,
                caller=self._caller,
                pin=self._session.id if begin.in_conversation else "",
                prediction=await self._service.prediction(begin.prediction),
            )
        except Exception as error:
            if not isinstance(error, PacelineError):
                _log.exception("A response could not start")
            self._drop(response_id)
            self._perform(self._session.refuse(response_id, error))
            return
        try:
            async with generation:
                reply.generation = generation
                self._perform(self._session.begin(response_id, generation))
                await self._pass_on(response_id, generation, reply.pacer)
        except Exception:
            _log.exception("A response broke down")
            self._perform(self._session.fail(response_id, "The server failed; its log says why."))

    async def _pass_on(self, response_id: str, generation: Generation, pacer: Pacer) -> None:
        while True:
            try:
                step = await generation.next(pacer.patience(time.perf_counter()))
            except TimeoutError:
                pieces = pacer.due(time.perf_counter())
            else:
                if step is None:
                    return
                pieces = pacer.push(step.piece, time.perf_counter())
            for piece in pieces:
                self._perform(self._session.piece(response_id, piece))
