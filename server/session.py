"""A realtime session without I/O: client messages and engine pieces in, server events and commands out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from paceline.engine.errors import RequestError

from .api_errors import ApiError, as_api_error
from .committer import Piece
from .conversation import Conversation
from .fields import Fields, JsonObject, parse_object
from .ids import NewId, random_id
from .parameters import Limits
from .response import Reply
from .session_items import Handlers, item_handlers
from .session_outputs import Output, Send, Warm, send
from .session_request import handler_of, read_settings
from .session_responses import SessionResponses
from .session_state import SessionState


class Session:
    """One client's conversation, settings and running responses.

    Every response that `begin` announced ends with exactly one `response.done`, whatever happens first: its last
    piece, `response.cancel`, or `fail`. Whenever the beginning of the next prompt has become another one, and nobody
    is writing to the conversation, the outputs end with a `Warm`.
    """

    def __init__(
        self,
        *,
        model: str,
        limits: Limits,
        conversation: Conversation,
        new_id: NewId = random_id,
        shell: Handlers | None = None,
    ) -> None:
        """shell: handlers of the client events that are the shell's to answer, by type."""
        self._state = SessionState(
            id=new_id("sess"),
            conversation_id=new_id("conv"),
            model=model,
            limits=limits,
            conversation=conversation,
            new_id=new_id,
        )
        self._responses = SessionResponses(self._state)
        self._event_numbers = count(1)
        self._warmed = self._beginning()
        self._handlers: Handlers = {
            **(shell or {}),
            "session.update": self._update,
            **item_handlers(self._state),
            **self._responses.handlers(),
        }

    @property
    def id(self) -> str:
        """Names the session, and the owner of what it keeps in the cache."""
        return self._state.id

    @property
    def idle(self) -> bool:
        return self._responses.idle

    @property
    def accepting(self) -> bool:
        """False while the server shuts down: no new response begins."""
        return self._responses.accepting

    @accepting.setter
    def accepting(self, value: bool) -> None:
        self._responses.accepting = value

    def preset(self, settings: JsonObject) -> None:
        """Settings to start with, before the client is there. Raises RequestError or ApiError, naming the field."""
        self._update(Fields({"session": settings}))

    def open(self) -> list[Output]:
        return self._numbered(send({"type": "session.created", "session": self.body()}))

    def body(self) -> JsonObject:
        """The session as clients see it."""
        return self._state.body()

    def receive(self, text: str) -> list[Output]:
        """One message of the client. Mistakes become `error` events; the session goes on."""
        event_id: str | None = None
        try:
            fields = Fields(parse_object(text, "The message"))
            event_id = fields.string("event_id")
            return self._numbered(handler_of(fields, self._handlers)(fields))
        except (RequestError, ApiError) as error:
            return self._error(error, event_id)

    # The shell's answers to Begin and Warm, and what the engine made

    def begin(self, response_id: str, reply: Reply) -> list[Output]:
        """Generation has started: announces the response."""
        return self._numbered(self._responses.begin(response_id, reply))

    def refuse(self, response_id: str, error: Exception) -> list[Output]:
        """Generation could not start: an error, and no response was ever there."""
        return self._error(error, self._responses.refuse(response_id))

    def piece(self, response_id: str, piece: Piece) -> list[Output]:
        """What one step gave a response; ignored when it has ended."""
        return self._numbered(self._responses.piece(response_id, piece))

    def cancel(self, response_id: str) -> list[Output]:
        """As if the client had said so; ignored when the response has ended."""
        return self._numbered(self._responses.cancel(response_id))

    def fail(self, response_id: str, message: str) -> list[Output]:
        """Generation broke down outside the engine; ignored when the response has ended."""
        return self._numbered(self._responses.fail(response_id, message))

    def prefilled(self, warm: Warm, tokens: int, stable_tokens: int, cached_tokens: int) -> list[Output]:
        """A prompt of so many tokens was made ready for `warm`, as many of them as are sure to come and in the cache;
        ignored when its text was committed or revised meanwhile."""
        if not warm.pending or not self._state.pending.startswith(warm.pending):
            return []
        told = {"tokens": tokens, "stable_tokens": stable_tokens, "cached_tokens": cached_tokens}
        return self._numbered(send({"type": "x_input_text.prefilled", **told, "text_end": len(warm.pending)}))

    # Parts of them

    def _update(self, fields: Fields) -> list[Output]:
        session, state = fields.required("session", "the settings to change"), self._state
        session.choice("type", ("realtime",))
        if session.string("model") not in (None, state.model, "default"):
            session.refuse("model", f"must be {state.model!r}, which is served here, or 'default'; or leave it out.")
        instructions = session.string("instructions")
        state.parameters = read_settings(session, state.limits, state.parameters)
        if instructions is not None:
            state.instructions = instructions
        return send({"type": "session.updated", "session": state.body()})

    def _error(self, error: Exception, client_event: str | None) -> list[Output]:
        body = as_api_error(error).body()["error"]
        return self._numbered(send({"type": "error", "error": {**body, "event_id": client_event}}))

    def _numbered(self, outputs: Sequence[Output]) -> list[Output]:
        """With an id for each event, and at the end what to warm."""
        out: list[Output] = [
            Send({**output.event, "event_id": f"event_{next(self._event_numbers)}"})
            if isinstance(output, Send)
            else output
            for output in outputs
        ]
        return out + self._warm()

    def _warm(self) -> list[Output]:
        beginning = self._beginning()
        if beginning == self._warmed or self._responses.writing is not None:
            return []
        self._warmed = beginning
        state = self._state
        messages = state.messages()
        if not messages and not state.pending:
            return []
        return [Warm(messages=messages, pending=state.pending or None, parameters=state.parameters)]

    def _beginning(self) -> tuple[object, ...]:
        """Equal as long as the next prompt begins the same."""
        state = self._state
        return state.conversation.version, state.pending, state.instructions, state.parameters
