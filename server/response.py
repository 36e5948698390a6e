"""One realtime response in progress, and the events that tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .committer import Committer, Piece, Usage
from .fields import JsonObject
from .items import Status
from .parameters import Parameters
from .reply_parts import Span, spans_of
from .response_output import DELTAS, ResponseOutput
from .step_counts import StepCounts


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
    output: ResponseOutput
    conversation_id: str | None  # None: it runs beside the conversation and writes nothing to it
    parameters: Parameters
    metadata: JsonObject | None
    client_event: str | None  # event_id of the client's response.create
    reply: Reply | None = None  # None until generation has started
    seq: int = 0  # number of the last delta
    counts: StepCounts = field(default_factory=StepCounts)

    def opened(self) -> list[JsonObject]:
        return [{"type": "response.created", "response": self._body("in_progress")}]

    def delta(self, piece: Piece) -> list[JsonObject]:
        """What one step gave. Tokens without text are counted with the next delta, or at the end."""
        self.counts.add(piece)
        events = []
        for part in piece.parts:
            events += self._numbered(self.output.take(part), spans_of(part))
        if piece.finish is not None and self.counts.pending:
            events += self._numbered(self.output.rest(), ())
        return events

    def ended(self, status: str, details: JsonObject | None) -> list[JsonObject]:
        """The last events; `response.done` is the very last."""
        whole: Status = "completed" if status == "completed" else "incomplete"
        return [
            *self.output.close(whole),
            {"type": "response.done", "response": self._body(status, details)},
        ]

    def _numbered(self, events: Sequence[JsonObject], spans: Sequence[Span] | None) -> list[JsonObject]:
        """The events, with their number and figures on the delta among them, whose text is made of `spans`."""
        out = []
        for event in events:
            if event["type"] in DELTAS:
                self.seq += 1
                event = {**event, "x_seq": self.seq, "x_spec": self.counts.take(spans)}
            out.append(event)
        return out

    def _body(self, status: str, details: JsonObject | None = None) -> JsonObject:
        """The response object; usage, figures and output once it has ended."""
        ended = status != "in_progress"
        body: JsonObject = {
            "id": self.id,
            "object": "realtime.response",
            "status": status,
            "status_details": None if details is None else {"type": status, **details},
            "output": [item.body() for item in self.output.items] if ended else [],
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
        "output_token_details": {
            "text_tokens": usage.completion_tokens,
            "audio_tokens": 0,
            "reasoning_tokens": usage.reasoning_tokens,
        },
    }


def failure(message: str) -> JsonObject:
    """The details of a response that failed."""
    return {"error": {"type": "server_error", "code": "engine_error", "message": message}}
