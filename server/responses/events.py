"""One response in progress: pieces of the reply in, the events that tell of it out, and the object it becomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from paceline.engine.request import TokenLogprob

from ..committer import Piece, Usage
from ..fields import JsonObject
from ..ids import NewId, random_id
from ..reply_parts import CallArguments, CallBegin, Part, Span, Thought
from ..reply_parts import Words as WordsPart
from ..response import Reply
from ..step_counts import StepCounts
from ..token_logprobs import TokenNames, logprob_body
from .items import Item
from .output_items import Calls, OutputItem, Thoughts, Words
from .request import ResponseRequest

Status = Literal["in_progress", "completed", "incomplete", "cancelled", "failed"]

# There is no event of its own for a cancel: clients wait for one of three, and the status says the rest.
_LAST_EVENT: Mapping[Status, str] = MappingProxyType(
    {
        "completed": "response.completed",
        "incomplete": "response.incomplete",
        "cancelled": "response.incomplete",
        "failed": "response.failed",
    }
)


class ResponseEvents:
    """Every response ends with exactly one last event, whose `response` is what `body` returns from then on."""

    def __init__(
        self,
        request: ResponseRequest,
        reply: Reply | None,
        *,
        id: str,  # noqa: A002 - the response's id on the wire
        model: str,
        names: TokenNames,
        new_id: NewId = random_id,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """reply: None where nothing was generated. names: of tokens, for logprobs. clock: seconds since 1970."""
        self.id = id
        self.status: Status = "in_progress"
        self._request = request
        self._reply = reply
        self._model = model
        self._names = names
        self._new_id = new_id
        self._clock = clock
        self._created_at = int(clock())
        self._completed_at: int | None = None
        self._incomplete: JsonObject | None = None
        self._error: JsonObject | None = None
        self._output: list[OutputItem] = []
        self._open: OutputItem | None = None  # the item that is being written, the last of the output
        self._calls: dict[int, Calls] = {}  # by their index in the reply
        self._counts = StepCounts()
        self._number = -1

    @property
    def ended(self) -> bool:
        return self.status != "in_progress"

    @property
    def calls(self) -> tuple[Calls, ...]:
        """The tools called so far, the one whose arguments are being written included."""
        return tuple(call for call in self._calls.values() if not call.broken)

    @property
    def items(self) -> tuple[Item, ...]:
        """What the conversation remembers of the output."""
        kept = (item.kept() for item in self._output)
        return tuple(item for item in kept if item is not None)

    def begin(self) -> list[JsonObject]:
        return self.send(*({"type": kind, "response": self.body()} for kind in ("response.created", _IN_PROGRESS)))

    def piece(self, piece: Piece) -> list[JsonObject]:
        """What one step gave; nothing once the response has ended."""
        if self.ended:
            return []
        out = self._write(piece)
        match piece.finish:
            case None:
                return out
            case "stop" | "tool_calls" | "prefilled":
                return out + self._end("completed")
            case "length":
                return out + self._end("incomplete", reason="max_output_tokens")
            case "abort":
                return out + self.fail("The server stopped before this response was complete; send it again.")
        return out + self.fail(piece.error or "The engine failed on this request.")

    def cancel(self) -> list[JsonObject]:
        return [] if self.ended else self._rest() + self._end("cancelled")

    def steer(self) -> list[JsonObject]:
        """Ended so that another response can go on with what was said meanwhile."""
        return [] if self.ended else self._rest() + self._end("incomplete", reason="steered")

    def fail(self, message: str) -> list[JsonObject]:
        if self.ended:
            return []
        self._error = {"code": "server_error", "message": message}
        return self._end("failed")

    def send(self, *events: JsonObject) -> list[JsonObject]:
        """Numbers events of this response."""
        out: list[JsonObject] = []
        for event in events:
            self._number += 1
            out.append({**event, "sequence_number": self._number})
        return out

    def body(self) -> JsonObject:
        """The response object; usage and figures once it has ended."""
        body: JsonObject = {
            "id": self.id,
            "object": "response",
            "created_at": self._created_at,
            "completed_at": self._completed_at,
            "status": self.status,
            "model": self._model,
            "error": self._error,
            "incomplete_details": self._incomplete,
            **self._request.echo,
            "output": [item.body() for item in self._output],
            "usage": None,
        }
        if self.ended:
            body["usage"] = _usage_body(Usage(0, 0, 0) if self._reply is None else self._reply.committer.usage)
        if self._reply is not None:
            body["seed"] = self._reply.seed
            if self.ended:
                body["metrics"] = self._reply.metrics()
        return body

    def _rest(self) -> list[JsonObject]:
        """What the committer still held back."""
        return [] if self._reply is None else self._write(self._reply.committer.close())

    def _write(self, piece: Piece) -> list[JsonObject]:
        """The events of a piece's parts; the step's figures ride on the first of them that brings text."""
        self._counts.add(piece)
        out: list[JsonObject] = []
        for part in piece.parts:
            out += self._part(part)
        return out

    def _part(self, part: Part) -> list[JsonObject]:
        match part:
            case CallBegin(index=index, id=call_id, name=name):
                call = Calls(self._new_id(Calls.prefix), len(self._output), call_id, name)
                self._calls[index] = call
                return self._switch(call)
            case CallArguments(index=index, text=text):
                return self.send(self._calls[index].added(text, [], self._figures(None)))
            case Thought(text=text):
                return self._switch_to(Thoughts) + self._told(text, (), None)
            case WordsPart(text=text, logprobs=logprobs, spans=spans):
                return self._switch_to(Words) + self._told(text, logprobs, spans)

    def _told(self, text: str, logprobs: Sequence[TokenLogprob], spans: Sequence[Span] | None) -> list[JsonObject]:
        """More text of the open item."""
        assert self._open is not None
        bodies = [logprob_body(self._names, entry) for entry in logprobs]
        return self.send(self._open.added(text, bodies, self._figures(spans)))

    def _figures(self, spans: Sequence[Span] | None) -> JsonObject:
        counts = self._counts
        told = counts.pending or (counts.traced and spans is not None)
        return {"x_spec": counts.take(spans)} if told and self._request.parameters.figures else {}

    def _switch_to(self, kind: type[Words] | type[Thoughts]) -> list[JsonObject]:
        if isinstance(self._open, kind):
            return []
        return self._switch(kind(self._new_id(kind.prefix), len(self._output)))

    def _switch(self, item: OutputItem) -> list[JsonObject]:
        """Ends the item that is open, and opens another."""
        out = self._close("completed")
        self._open = item
        self._output.append(item)
        return out + self.send(*item.opened())

    def _close(self, status: Literal["completed", "incomplete"]) -> list[JsonObject]:
        item, self._open = self._open, None
        return [] if item is None else self.send(*item.closed(status))

    def _end(self, status: Status, *, reason: str | None = None) -> list[JsonObject]:
        out: list[JsonObject] = []
        if status == "completed" and not self._output and self._request.generate:
            out += self._switch_to(Words)  # a reply without a word is a message all the same
        untold = () if self._reply is None else self._reply.committer.untold
        if untold and isinstance(self._open, Words):  # of tokens without text, as the one that ends the reply
            out += self._told("", untold, ())
        out += self._close("completed" if status == "completed" else "incomplete")
        self.status = status
        self._incomplete = None if reason is None else {"reason": reason}
        self._completed_at = int(self._clock()) if status == "completed" else None
        return out + self.send({"type": _LAST_EVENT[status], "response": self.body()})


_IN_PROGRESS = "response.in_progress"


def _usage_body(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.prompt_tokens - usage.cached_tokens,
        },
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
