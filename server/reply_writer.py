"""The steps of a reply as chunks or as one body: what all completions have in common, however each spells a choice."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Protocol

from paceline.engine.request import TokenLogprob

from .fields import JsonObject
from .generation import Generation, Step
from .reply_parts import Part, Span, joined, spans_of
from .service import Service
from .step_counts import StepCounts
from .stream_options import StreamOptions


class ReplyShape(Protocol):
    """How one protocol spells the choices of one reply. Parts come joined: no two neighbours continue each other."""

    @property
    def body_kind(self) -> str:
        """`object` of a whole reply."""

    @property
    def chunk_kind(self) -> str:
        """`object` of a chunk."""

    def opening(self, parts: Sequence[Part]) -> list[JsonObject]:
        """A choice's chunks before the first ones, which are made of `parts`. Of these, and below: its own fields."""

    def deltas(self, parts: Sequence[Part]) -> list[JsonObject]:
        """A choice's chunks, one for each part that is told."""

    def nothing(self) -> JsonObject:
        """A choice's last chunk, which brings no more of it."""

    def blank(self) -> JsonObject:
        """A chunk of a choice without text, for figures that wait for no text."""

    def whole(self, parts: Sequence[Part]) -> JsonObject:
        """A choice of a whole reply."""

    def logprobs(self, index: int, entries: Sequence[TokenLogprob] | None) -> JsonObject | None:
        """Of the next tokens of choice `index`: what was told before goes into it where places in the text do."""


class ReplyForm:
    """What is the same on every chunk and body of one reply."""

    def __init__(
        self,
        service: Service,
        prefix: str,
        shape: ReplyShape,
        options: StreamOptions,
        *,
        figures: bool = False,
    ) -> None:
        """prefix: of the reply's id. figures: `x_spec` on chunks."""
        self.id = f"{prefix}-{uuid.uuid4().hex}"
        self.shape = shape
        self.options = options
        self.figures = figures
        self._head: JsonObject = {
            "id": self.id,
            "created": int(time.time()),
            "model": service.model_id,
            "system_fingerprint": service.fingerprint,
        }

    def chunk(self, choices: list[JsonObject], extra: JsonObject) -> JsonObject:
        return {**self._head, "object": self.shape.chunk_kind, "choices": choices, **extra}

    def body(self, choices: list[JsonObject], extra: JsonObject) -> JsonObject:
        return {**self._head, "object": self.shape.body_kind, "choices": choices, **extra}


class ChunkWriter:
    """Which chunks a step becomes: one for each part, behind the opening of its choice; the finish alone.

    What belongs to the step as a whole, its logprobs and figures, rides on the first of its chunks. A step without any
    leaves its figures to the next one; logprobs do not wait for text. With a trace every chunk of words has
    figures, for what its text is made of.
    """

    def __init__(self, generation: Generation, form: ReplyForm) -> None:
        self._generation = generation
        self._form = form
        self._counts = [StepCounts() for _ in generation.requests]
        self._opened: set[int] = set()

    def step(self, step: Step) -> list[JsonObject]:
        index, piece, shape = step.index, step.piece, self._form.shape
        if piece.finish == "prefilled":
            return []
        self._counts[index].add(piece)
        parts = joined(piece.parts)
        contents = [(content, spans_of(part)) for part in parts for content in shape.deltas((part,))]
        if not contents and piece.logprobs:
            contents = [(shape.blank(), ())]
        out = []
        if index not in self._opened and (contents or piece.finish):
            self._opened.add(index)
            out += [self._chunk(index, content) for content in shape.opening(parts)]
        for place, (content, spans) in enumerate(contents):
            first = place == 0
            logprobs = shape.logprobs(index, piece.logprobs) if first else None
            told = first or (self._counts[index].traced and spans is not None)
            out.append(self._chunk(index, content, logprobs=logprobs, extra=self._spec(index, spans) if told else {}))
        if piece.finish is not None:
            extra = {"seed": self._generation.requests[index].sampling.seed}
            if self._counts[index].pending:
                extra |= self._spec(index, ())
            out.append(self._chunk(index, shape.nothing(), finish=piece.finish, extra=extra))
        return out

    def end(self) -> list[JsonObject]:
        """After the last step: the usage, if it was asked for."""
        if not self._form.options.include_usage:
            return []
        extra = {
            "usage": self._generation.usage(),
            "metrics": self._generation.metrics(),
            "seed": self._generation.seed,
        }
        return [self._form.chunk([], extra)]

    def _chunk(
        self,
        index: int,
        content: JsonObject,
        *,
        logprobs: JsonObject | None = None,
        finish: str | None = None,
        extra: JsonObject | None = None,
    ) -> JsonObject:
        choice = {"index": index, **content, "logprobs": logprobs, "finish_reason": finish}
        usage = {"usage": self._generation.usage()} if self._form.options.continuous_usage else {}
        return self._form.chunk([choice], {**usage, **(extra or {})})

    def _spec(self, index: int, spans: Sequence[Span] | None) -> JsonObject:
        return {"x_spec": self._counts[index].take(spans)} if self._form.figures else {}


class BodyWriter:
    """All steps of a reply as one body."""

    def __init__(self, generation: Generation, form: ReplyForm) -> None:
        self._generation = generation
        self._form = form
        self._parts: list[list[Part]] = [[] for _ in generation.requests]
        self._logprobs: list[list[TokenLogprob]] = [[] for _ in generation.requests]
        self._finishes: dict[int, str] = {}

    def step(self, step: Step) -> None:
        self._parts[step.index] += step.piece.parts
        self._logprobs[step.index] += step.piece.logprobs or ()
        if step.piece.finish is not None:
            self._finishes[step.index] = step.piece.finish

    def body(self) -> JsonObject:
        choices = [
            self._choice(index, finish) for index, finish in sorted(self._finishes.items()) if finish != "prefilled"
        ]
        extra = {
            "usage": self._generation.usage(),
            "metrics": self._generation.metrics(),
            "seed": self._generation.seed,
        }
        return self._form.body(choices, extra)

    def _choice(self, index: int, finish: str) -> JsonObject:
        shape = self._form.shape
        wanted = self._generation.requests[index].sampling.logprobs is not None
        return {
            "index": index,
            **shape.whole(joined(self._parts[index])),
            "logprobs": shape.logprobs(index, self._logprobs[index] if wanted else None),
            "finish_reason": finish,
        }
