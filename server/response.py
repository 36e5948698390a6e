"""One realtime response in progress, and the events that tell of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from .committer import Committer, Piece, Usage
from .conversation import Item
from .fields import JsonObject
from .parameters import Parameters
from .step_counts import StepCounts

DELTA = "response.output_text.delta"


class Reply(Protocol):
    """What a response reads of its running generation."""

    @property
    def seed(self) -> int: ...
    @property
    def committer(self) -> Committer: ...
    def metrics(self) -> JsonObject: ...


@dataclass(slots=True, kw_only=True)
class Response:
    """Events are made here without an event_id; the session numbers them."""

    id: str
    item: Item
    conversation_id: str | None  # None: it runs beside the conversation and writes nothing to it
    parameters: Parameters
    metadata: JsonObject | None
    client_event: str | None  # event_id of the client's response.create
    after: Item | None  # the conversation's last item when the response was asked for
    reply: Reply | None = None  # None until generation has started
    seq: int = 0  # number of the last delta
    counts: StepCounts = field(default_factory=StepCounts)

    def opened(self, previous_item_id: str | None) -> list[JsonObject]:
        """The events before the first text; `previous_item_id` is the item before this one in the conversation."""
        events: list[JsonObject] = [
            {"type": "response.created", "response": self._body("in_progress")},
            {"type": "response.output_item.added", **self._output(), "item": self.item.body()},
        ]
        if self.conversation_id is not None:
            events.append(self._conversation_item("added", previous_item_id))
        return [*events, {"type": "response.content_part.added", **self._part(), "part": {"type": "text", "text": ""}}]

    def delta(self, piece: Piece) -> list[JsonObject]:
        """One event per step with text. Tokens without text are counted with the next text, or at the end."""
        self.counts.add(piece)
        self.item.text += piece.text
        if not piece.text and not (piece.finish is not None and self.counts.pending):
            return []
        self.seq += 1
        return [
            {"type": DELTA, **self._part(), "delta": piece.text, "x_seq": self.seq, "x_spec": self.counts.take()},
        ]

    def ended(self, status: str, details: JsonObject | None, previous_item_id: str | None) -> list[JsonObject]:
        """The last events; `response.done` is the very last."""
        self.item.status = "completed" if status == "completed" else "incomplete"
        text = self.item.text
        events: list[JsonObject] = [
            {"type": "response.output_text.done", **self._part(), "text": text},
            {"type": "response.content_part.done", **self._part(), "part": {"type": "text", "text": text}},
            {"type": "response.output_item.done", **self._output(), "item": self.item.body()},
        ]
        if self.conversation_id is not None:
            events.append(self._conversation_item("done", previous_item_id))
        return [*events, {"type": "response.done", "response": self._body(status, details)}]

    def _output(self) -> JsonObject:
        return {"response_id": self.id, "output_index": 0}

    def _part(self) -> JsonObject:
        return {**self._output(), "item_id": self.item.id, "content_index": 0}

    def _conversation_item(self, kind: str, previous_item_id: str | None) -> JsonObject:
        return {
            "type": f"conversation.item.{kind}",
            "previous_item_id": previous_item_id,
            "item": self.item.body(),
        }

    def _body(self, status: str, details: JsonObject | None = None) -> JsonObject:
        """The response object; usage, figures and output once it has ended."""
        ended = status != "in_progress"
        body: JsonObject = {
            "id": self.id,
            "object": "realtime.response",
            "status": status,
            "status_details": None if details is None else {"type": status, **details},
            "output": [self.item.body()] if ended else [],
            "conversation_id": self.conversation_id,
            "output_modalities": ["text"],
            "max_output_tokens": self.parameters.max_tokens or "inf",
            "metadata": self.metadata,
            "usage": None,
        }
        if self.reply is not None:
            body["seed"] = self.reply.seed
            if ended:
                body["metrics"] = self.reply.metrics()
        if ended:
            body["usage"] = _usage(Usage(0, 0, 0) if self.reply is None else self.reply.committer.usage)
        return body


def _usage(usage: Usage) -> JsonObject:
    def by_kind(tokens: int) -> JsonObject:
        return {"text_tokens": tokens, "audio_tokens": 0, "image_tokens": 0}

    return {
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "input_token_details": {
            **by_kind(usage.prompt_tokens),
            "cached_tokens": usage.cached_tokens,
            "cached_tokens_details": by_kind(usage.cached_tokens),
        },
        "output_token_details": {"text_tokens": usage.completion_tokens, "audio_tokens": 0},
    }


def failure(message: str) -> JsonObject:
    """The details of a response that failed."""
    return {"error": {"type": "server_error", "code": "engine_error", "message": message}}
