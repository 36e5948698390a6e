"""The responses of one realtime session, from `response.create` to the one `response.done` of each."""

from __future__ import annotations

from dataclasses import replace

from paceline.engine.errors import RequestError

from .api_errors import ApiError
from .chat_request import read_prediction
from .committer import Piece
from .fields import Fields
from .items import Item, read_item
from .response import Reply, Response, failure
from .response_output import ResponseOutput
from .session_items import Handlers
from .session_outputs import Abort, Begin, Output, send
from .session_request import read_metadata, read_settings
from .session_state import SessionState

MAX_RESPONSES = 8  # at once in one session; one of them writes to the conversation


class SessionResponses:
    """Every response that `begin` announced ends with exactly one `response.done`, whatever happens first: its last
    piece, `response.cancel`, or `fail`."""

    def __init__(self, state: SessionState) -> None:
        self.accepting = True  # False while the server shuts down
        self._state = state
        self._running: dict[str, Response] = {}

    @property
    def idle(self) -> bool:
        return not self._running

    @property
    def writing(self) -> Response | None:
        """The response that writes to the conversation."""
        return next((r for r in self._running.values() if r.conversation_id is not None), None)

    def handlers(self) -> Handlers:
        return {"response.create": self._create, "response.cancel": self._cancel}

    # The shell's answers to Begin, and what the engine made

    def begin(self, response_id: str, reply: Reply) -> list[Output]:
        """Generation has started: announces the response."""
        response = self._running[response_id]
        response.reply = reply
        return send(*response.opened())

    def refuse(self, response_id: str) -> str | None:
        """Generation could not start, and no response was ever there; returns the event_id of what asked for it."""
        return self._running.pop(response_id).client_event

    def piece(self, response_id: str, piece: Piece) -> list[Output]:
        """What one step gave a response; ignored when it has ended."""
        response = self._running.get(response_id)
        if response is None:
            return []
        out = send(*response.delta(piece))
        match piece.finish:
            case None:
                return out
            case "stop" | "tool_calls":
                return out + self._end(response, "completed")
            case "length":
                return out + self._end(response, "incomplete", {"reason": "max_output_tokens"})
            case "abort":
                return out + self._end(response, "cancelled", {"reason": "server_stopped"})
        return out + self._end(response, "failed", failure(piece.error or "The engine failed."))

    def fail(self, response_id: str, message: str) -> list[Output]:
        """Generation broke down outside the engine; ignored when the response has ended."""
        response = self._running.get(response_id)
        return [] if response is None else self._break_off(response, "failed", failure(message))

    def cancel(self, response_id: str) -> list[Output]:
        """Its client wants no more of it, or has gone; ignored when the response has ended."""
        response = self._running.get(response_id)
        if response is None:
            return []
        return [Abort(response_id), *self._break_off(response, "cancelled", {"reason": "client_cancelled"})]

    # Client events

    def _create(self, fields: Fields) -> list[Output]:
        if not self.accepting:
            raise ApiError(503, "The server is shutting down; connect again in a moment.", code="shutting_down")
        state = self._state
        asked = fields.child("response") or Fields({}, "response")
        in_conversation = asked.choice("conversation", ("auto", "none")) != "none"
        resumable = asked.boolean("x_resume") or False
        parameters, metadata = read_settings(asked, state.limits, state.parameters), read_metadata(asked)
        prediction = read_prediction(asked)
        self._require_room(in_conversation)
        items = None if asked.array("input") is None else [self._input_item(entry) for entry in asked.each("input")]
        messages = state.messages(asked.string("instructions"), items)
        if not messages:
            raise RequestError(
                "The conversation is empty; add a message with conversation.item.create first.",
                code="empty_conversation",
            )
        response_id = state.new_id("resp")
        self._running[response_id] = Response(
            id=response_id,
            output=ResponseOutput(
                response_id,
                state.new_id,
                conversation=state.conversation if in_conversation else None,
                after=state.conversation.last,
            ),
            conversation_id=state.conversation_id if in_conversation else None,
            parameters=parameters,
            metadata=metadata,
            client_event=fields.string("event_id"),
        )
        begin = Begin(
            response_id=response_id,
            messages=messages,
            parameters=parameters,
            prediction=prediction,
            in_conversation=in_conversation,
            resumable=resumable,
        )
        return [begin]

    def _cancel(self, fields: Fields) -> list[Output]:
        wanted = fields.string("response_id")
        response = self.writing if wanted is None else self._running.get(wanted)
        if response is None:
            raise ApiError(
                400,
                "There is no such response in progress, so nothing was cancelled.",
                param=None if wanted is None else "response_id",
                code="response_cancel_not_active",
            )
        return self.cancel(response.id)

    # Parts of them

    def _require_room(self, in_conversation: bool) -> None:
        writing = self.writing
        if in_conversation and writing is not None:
            raise ApiError(
                409,
                f"The conversation already has an active response, {writing.id}; wait for its end or cancel it.",
                code="conversation_already_has_active_response",
            )
        if len(self._running) >= MAX_RESPONSES:
            raise ApiError(
                429,
                f"{MAX_RESPONSES} responses are running in this session; wait for one to end.",
                type="rate_limit_error",
                code="too_many_responses",
            )

    def _input_item(self, fields: Fields) -> Item:
        if fields.string("type") != "item_reference":
            return read_item(fields, self._state.new_id)
        return self._state.named_item(fields, "id")

    def _break_off(self, response: Response, status: str, details: dict[str, object]) -> list[Output]:
        """The end of a response whose reply has not ended."""
        reply = response.reply  # None: its prompt is still being made, and it is announced only to end
        # With an end even where the committer has none left to give: figures without text leave with it.
        rest = response.opened() if reply is None else response.delta(replace(reply.committer.close(), finish="abort"))
        return send(*rest) + self._end(response, status, details)

    def _end(self, response: Response, status: str, details: dict[str, object] | None = None) -> list[Output]:
        del self._running[response.id]
        return send(*response.ended(status, details))
