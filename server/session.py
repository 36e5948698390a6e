"""A realtime session without I/O: client messages and engine pieces in, server events and commands out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count

from paceline.engine.errors import RequestError

from .api_errors import ApiError, as_api_error
from .committer import Piece
from .conversation import Conversation, Item, read_item
from .fields import Fields, JsonObject, parse_object
from .parameters import Limits, Parameters
from .response import Reply, Response, failure
from .session_request import read_metadata, read_settings, unknown_event

MAX_RESPONSES = 8  # at once in one session; one of them writes to the conversation


@dataclass(frozen=True, slots=True)
class Send:
    """A server event for the client."""

    event: JsonObject


@dataclass(frozen=True, slots=True)
class Begin:
    """Start generating; answer with `Session.begin` or `Session.refuse`."""

    response_id: str
    messages: list[JsonObject]
    parameters: Parameters
    resumable: bool  # the client may ask for its events again, on another socket


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop generating at once."""

    response_id: str


Output = Send | Begin | Abort
Handler = Callable[[Fields], list[Output]]


def _random_id(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:24]}"


class Session:
    """One client's conversation, settings and running responses.

    Every response that `begin` announced ends with exactly one `response.done`, whatever happens first: its last
    piece, `response.cancel`, or `fail`.
    """

    def __init__(
        self,
        *,
        model: str,
        limits: Limits,
        conversation: Conversation,
        new_id: Callable[[str], str] = _random_id,
        shell: Mapping[str, Handler] | None = None,
    ) -> None:
        """shell: handlers of the client events that are the shell's to answer, by type."""
        self.accepting = True  # False while the server shuts down
        self._model = model
        self._limits = limits
        self._conversation = conversation
        self._new_id = new_id
        self._id = new_id("sess")
        self._conversation_id = new_id("conv")
        self._instructions = ""
        self._parameters = Parameters(priority="interactive")
        self._responses: dict[str, Response] = {}
        self._event_numbers = count(1)
        self._handlers: dict[str, Handler] = {
            **(shell or {}),
            "session.update": self._session_update,
            "conversation.item.create": self._item_create,
            "conversation.item.retrieve": self._item_retrieve,
            "conversation.item.delete": self._item_delete,
            "response.create": self._response_create,
            "response.cancel": self._response_cancel,
        }

    @property
    def idle(self) -> bool:
        return not self._responses

    def open(self) -> list[Output]:
        return self._send({"type": "session.created", "session": self._session_body()})

    def receive(self, text: str) -> list[Output]:
        """One message of the client. Mistakes become `error` events; the session goes on."""
        event_id: str | None = None
        try:
            fields = Fields(parse_object(text, "The message"))
            event_id = fields.string("event_id")
            kind = fields.string("type")
            if kind is None:
                fields.refuse("type", "is missing; every message needs one, such as response.create.")
            handler = self._handlers.get(kind)
            if handler is None:
                raise unknown_event(kind, self._handlers)
            return handler(fields)
        except (RequestError, ApiError) as error:
            return self._error(error, event_id)

    # The shell's answers to Begin, and what the engine made

    def begin(self, response_id: str, reply: Reply) -> list[Output]:
        """Generation has started: announces the response and its item."""
        response = self._responses[response_id]
        response.reply = reply
        return self._announce(response)

    def refuse(self, response_id: str, error: Exception) -> list[Output]:
        """Generation could not start: an error, and no response was ever there."""
        response = self._responses.pop(response_id)
        return self._error(error, response.client_event)

    def piece(self, response_id: str, piece: Piece) -> list[Output]:
        """What one step gave a response; ignored when it has ended."""
        response = self._responses.get(response_id)
        if response is None:
            return []
        out = self._send(*response.delta(piece))
        match piece.finish:
            case None:
                return out
            case "stop" | "tool_calls":
                return out + self._end(response, "completed", None)
            case "length":
                return out + self._end(response, "incomplete", {"reason": "max_output_tokens"})
            case "abort":
                return out + self._end(response, "cancelled", {"reason": "server_stopped"})
        return out + self._end(response, "failed", failure(piece.error or "The engine failed."))

    def fail(self, response_id: str, message: str) -> list[Output]:
        """Generation broke down outside the engine; ignored when the response has ended."""
        response = self._responses.get(response_id)
        return [] if response is None else self._end(response, "failed", failure(message))

    # Client events

    def _session_update(self, fields: Fields) -> list[Output]:
        session = fields.required("session", "the settings to change")
        session.choice("type", ("realtime",))
        if session.string("model") not in (None, self._model, "default"):
            session.refuse("model", f"cannot change within a session; it is {self._model!r}.")
        instructions = session.string("instructions")
        self._parameters = read_settings(session, self._limits, self._parameters)
        if instructions is not None:
            self._instructions = instructions
        return self._send({"type": "session.updated", "session": self._session_body()})

    def _item_create(self, fields: Fields) -> list[Output]:
        item = read_item(fields.required("item", "type, role and content"), self._new_id("item"))
        before = self._conversation.add(item, fields.string("previous_item_id"))
        kinds = ("conversation.item.added", "conversation.item.done")
        return self._send(*({"type": kind, "previous_item_id": before, "item": item.body()} for kind in kinds))

    def _item_retrieve(self, fields: Fields) -> list[Output]:
        return self._send({"type": "conversation.item.retrieved", "item": self._named_item(fields).body()})

    def _item_delete(self, fields: Fields) -> list[Output]:
        item = self._named_item(fields)
        if item.status == "in_progress":
            fields.refuse("item_id", f"{item.id!r} is still being written; cancel its response first.")
        self._conversation.remove(item)
        return self._send({"type": "conversation.item.deleted", "item_id": item.id})

    def _response_create(self, fields: Fields) -> list[Output]:
        if not self.accepting:
            raise ApiError(503, "The server is shutting down; connect again in a moment.", code="shutting_down")
        asked = fields.child("response") or Fields({}, "response")
        in_conversation, resumable = asked.choice("conversation", ("auto", "none")) != "none", asked.boolean("x_resume")
        parameters, metadata = read_settings(asked, self._limits, self._parameters), read_metadata(asked)
        self._require_room(in_conversation)
        messages = self._context(asked)
        response = Response(
            id=self._new_id("resp"),
            item=Item(self._new_id("item"), "assistant", "", "in_progress"),
            conversation_id=self._conversation_id if in_conversation else None,
            parameters=parameters,
            metadata=metadata,
            client_event=fields.string("event_id"),
            after=self._conversation.last,
        )
        self._responses[response.id] = response
        return [Begin(response.id, messages, parameters, resumable or False)]

    def _response_cancel(self, fields: Fields) -> list[Output]:
        wanted = fields.string("response_id")
        response = self._writing() if wanted is None else self._responses.get(wanted)
        if response is None:
            raise ApiError(
                400,
                "There is no such response in progress, so nothing was cancelled.",
                param=None if wanted is None else "response_id",
                code="response_cancel_not_active",
            )
        if response.reply is None:  # its prompt is still being made: it is announced only to end
            rest = self._announce(response)
        else:
            rest = self._send(*response.delta(response.reply.committer.close()))
        return [Abort(response.id), *rest, *self._end(response, "cancelled", {"reason": "client_cancelled"})]

    # Parts of them

    def _require_room(self, in_conversation: bool) -> None:
        writing = self._writing()
        if in_conversation and writing is not None:
            raise ApiError(
                409,
                f"The conversation already has an active response, {writing.id}; wait for its end or cancel it.",
                code="conversation_already_has_active_response",
            )
        if len(self._responses) >= MAX_RESPONSES:
            raise ApiError(
                429,
                f"{MAX_RESPONSES} responses are running in this session; wait for one to end.",
                type="rate_limit_error",
                code="too_many_responses",
            )

    def _context(self, asked: Fields) -> list[JsonObject]:
        """The messages of a response: instructions, then its own input or the conversation."""
        own = asked.string("instructions")
        instructions = self._instructions if own is None else own
        head: list[JsonObject] = [{"role": "system", "content": instructions}] if instructions else []
        if asked.array("input") is None:
            body = self._conversation.messages()
        else:
            body = [self._input_item(entry).message() for entry in asked.each("input")]
        if not head and not body:
            raise RequestError(
                "The conversation is empty; add a message with conversation.item.create first.",
                code="empty_conversation",
            )
        return head + body

    def _input_item(self, fields: Fields) -> Item:
        if fields.string("type") != "item_reference":
            return read_item(fields, "")
        return self._named_item(fields, "id")

    def _named_item(self, fields: Fields, key: str = "item_id") -> Item:
        item_id = fields.string(key)
        if item_id is None:
            fields.refuse(key, "is missing; name the item.")
        return self._conversation.find(item_id, fields.name(key))

    def _writing(self) -> Response | None:
        """The response that writes to the conversation."""
        return next((r for r in self._responses.values() if r.conversation_id is not None), None)

    # Server events

    def _announce(self, response: Response) -> list[Output]:
        in_conversation = response.conversation_id is not None
        before = self._conversation.add_reply(response.item, response.after) if in_conversation else None
        return self._send(*response.opened(before))

    def _end(self, response: Response, status: str, details: JsonObject | None) -> list[Output]:
        del self._responses[response.id]
        return self._send(*response.ended(status, details, self._conversation.before(response.item)))

    def _send(self, *events: JsonObject) -> list[Output]:
        """Numbers the events."""
        return [Send({**event, "event_id": f"event_{next(self._event_numbers)}"}) for event in events]

    def _error(self, error: Exception, client_event: str | None) -> list[Output]:
        body = as_api_error(error).body()["error"]
        return self._send({"type": "error", "error": {**body, "event_id": client_event}})

    def _session_body(self) -> JsonObject:
        parameters, spec = self._parameters, self._parameters.speculation
        return {
            "id": self._id,
            "object": "realtime.session",
            "type": "realtime",
            "model": self._model,
            "output_modalities": ["text"],
            "instructions": self._instructions,
            "max_output_tokens": parameters.max_tokens or "inf",
            "tools": [],
            "tool_choice": "auto",
            "temperature": parameters.sampling.temperature,
            "seed": parameters.seed,
            "speculation": {"mode": spec.mode, "max_nodes": min(spec.max_nodes, self._limits.max_nodes)},
        }
