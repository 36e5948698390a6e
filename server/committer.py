"""Where an accepted run becomes text, stop decisions, usage, logprobs and telemetry: once, for every protocol."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from paceline.engine.request import Delta, Finish, TokenLogprob

from .fields import JsonObject
from .origins import Origins
from .reply_parts import Part, PartReader, PlainReader, Words, joined
from .spec_figures import SpecFigures
from .step_trace import step_body
from .stop_strings import StopStrings
from .text_decoder import without_shown

if TYPE_CHECKING:
    from paceline.spec.planner import Reason

    from .text_decoder import TextDecoder


Ending = Finish | Literal["tool_calls"]


class Vocabulary(Protocol):
    """What the committer asks of a tokenizer."""

    def decoder(self, shown: Mapping[int, str]) -> TextDecoder:
        """A new incremental decoder, for one reply."""

    def token_text(self, id_: int) -> str:
        """The token for people to read."""


class PromptCounts(NamedTuple):
    """Tokens of the prompt, and how many of them were in the cache."""

    tokens: int
    cached: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one delta adds to the reply.

    `tokens` and `logprobs` are those the engine delivered with this delta and the reply keeps; `text` is what became
    certain with it, so text that was held back comes with the tokens of a later piece. Over a reply `tokens` add up to
    `usage.completion_tokens`.
    """

    text: str = ""
    text_ends: tuple[int, ...] = field(
        default=(), compare=False
    )  # code points of `text` at which the texts of its tokens end
    parts: tuple[Part, ...] = ()  # what `text` is, and what earlier text turned out to be
    tokens: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] | None = None  # aligned with tokens
    finish: Ending | None = None
    cut: int | None = None  # the reply ends here though the engine went on: keep this many output tokens
    drafted: int = 0  # guesses verified in this step
    accepted: int = 0  # of these, the ones the reply keeps
    source: str = ""  # the drafters whose guesses were accepted
    reason: Reason | None = None  # why as many guesses were verified
    step: JsonObject | None = None  # the step as `step_body` tells it, where a trace was asked for
    prompt: PromptCounts | None = None  # with the reply's first token, which comes when all of the prompt is there
    error: str | None = None  # with finish "error"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply. `completion_tokens` counts a stop id and the token that completed a stop string; of these
    `reasoning_tokens` came while the reply was thinking, the closing tag among them."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    reasoning_tokens: int = 0


class Committer:
    """One reply, from its deltas. Not thread safe; make one for each request and choice.

    The reply ends at the first of: a stop id (counted as a token, no text), a stop string, where its reader says that
    it is over, the engine's own finish.
    A stop string is looked for in the text and may lie anywhere in it: inside a token, across tokens, across deltas.
    The one that is complete first wins (the longest, if several are complete at once); text ends before it, and tokens,
    logprobs, usage and speculation figures end with the token that completed it. What comes after is dropped from all.

    Text that may be the beginning of a stop string is held back, by whole tokens, so that a marker that is one token
    is never split; it is released to the reader as soon as it cannot be one, or at the end. Every decision is made
    token by token: how the tokens are spread over deltas changes nothing but the pieces.
    """

    def __init__(
        self,
        tokenizer: Vocabulary,
        *,
        stops: StopStrings,
        stop_ids: Collection[int],
        prompt_tokens: int,
        reader: PartReader | None = None,
        shown: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """reader: of this reply's text; by default all of it is for the client to read. shown: special tokens that the
        reader is to see, see `Tokenizer.decoder`."""
        self._tokenizer = tokenizer
        self._decoder = tokenizer.decoder(shown)
        self._stops = stops
        self._stop_ids = frozenset(stop_ids)
        self._state = 0
        # Not yet released: texts of tokens, how many tokens (1 or 0), and who guessed them; None where nobody asked.
        self._held: deque[tuple[str, int, str | None]] = deque()
        self._held_size = 0
        self._released: list[str] = []
        self._parts: list[Part] = []  # of this piece
        self._origins = Origins()
        self._source: str | None = None  # of the last token held
        self._logprobs: deque[TokenLogprob] = deque()  # of the tokens held
        self.untold: tuple[TokenLogprob, ...] = ()  # of tokens released that no part tells of yet
        self._reasoning_tokens = 0
        self._kept = 0  # output tokens
        self._prompt_tokens = prompt_tokens
        self._cached_tokens = 0
        self._finished = False
        self._reader = reader or PlainReader()
        self.figures = SpecFigures()

    def push(self, delta: Delta) -> Piece:
        """Commit one step. Once the reply is finished every further delta is dropped: an empty piece."""
        if self._finished:
            return Piece()
        try:
            return self._push(delta)
        except Exception:
            self._finished = True  # a reader that broke is not asked again: the reply must still be closed
            raise

    def _push(self, delta: Delta) -> Piece:
        self._cached_tokens = max(self._cached_tokens, delta.cached_tokens)
        kept = len(delta.tokens)
        first = len(self._released)
        matched = stopped = False
        emitted = () if delta.trace is None else delta.trace.emitted
        for index, token in enumerate(delta.tokens):
            stopped = token in self._stop_ids
            self._source = emitted[index][1] if emitted else None
            if delta.logprobs is not None:
                self._logprobs.append(delta.logprobs[index])
            matched = self._hold("" if stopped else self._decoder.push((token,)))
            self._release(0 if matched else self._stops.pending(self._state))
            if stopped or matched or self._reader.over:
                kept = index + 1
                break
        cut = matched or self._reader.over
        finish: Finish | None = "stop" if stopped or cut else delta.finish
        if finish is not None and not cut:
            # The end of a character that was cut off is text too, and may complete a stop string.
            cut = self._hold(self._decoder.flush(), tokens=0)
            finish = "stop" if cut else finish
        engine_ended = delta.finish == finish and kept == len(delta.tokens) and not cut
        return self._commit(delta, kept, finish, first, cut=finish is not None and not engine_ended)

    def close(self) -> Piece:
        """End a reply that was aborted: releases what is held back. An empty piece if it is already finished, or broke
        down in `push`."""
        piece = self.push(Delta(request_id="", tokens=(), finish="abort"))
        return replace(piece, cut=None)

    def _commit(self, delta: Delta, kept: int, finish: Finish | None, first: int, *, cut: bool) -> Piece:
        self._finished = finish is not None
        if finish is not None:
            self._release(0)
            self._parts += self._claimed(self._reader.close())
        prompt = PromptCounts(self._prompt_tokens, self._cached_tokens) if kept > self._kept == 0 else None
        self._kept += kept
        accepted = min(delta.accepted, kept)
        parts, self._parts = joined(self._parts), []
        texts = self._released[first:]
        self.figures.add(delta.drafted, accepted)
        trace = None if delta.trace is None else delta.trace.kept(kept)
        return Piece(
            text="".join(texts),
            text_ends=tuple(accumulate(map(len, texts))),
            parts=tuple(parts),
            tokens=delta.tokens[:kept],
            logprobs=None if delta.logprobs is None else delta.logprobs[:kept],
            finish="tool_calls" if finish == "stop" and self._reader.called else finish,
            cut=self._kept if cut else None,
            drafted=delta.drafted,
            accepted=accepted,
            source=delta.source if accepted else "",
            reason=delta.reason,
            step=None if trace is None else step_body(trace, delta.step_ms, delta.reason, self._tokenizer),
            prompt=prompt,
            error=delta.error,
        )

    def _hold(self, text: str, tokens: int = 1) -> bool:
        """Take in one token's text; True when a stop string is complete, which is then cut off."""
        self._state, read, match = self._stops.scan(self._state, text)
        if match:
            text = text[:read]
        self._held.append((text, tokens, self._source))
        self._held_size += len(text)
        self._take_back(match)
        return match > 0

    def _take_back(self, size: int) -> None:
        """Cut the last `size` characters off. All of them are held: until now they were a possible beginning."""
        self._held_size -= size
        shortened: deque[tuple[str, int, str | None]] = deque()
        while size:
            text, tokens, source = self._held.pop()
            kept = text[: max(len(text) - size, 0)]
            size -= len(text) - len(kept)
            shortened.appendleft((kept, tokens, source))
        self._held += shortened

    def _release(self, pending: int) -> None:
        """Let the reader have the tokens held, except those that reach into the last `pending` characters."""
        while self._held and self._held_size - len(self._held[0][0]) >= pending:
            text, tokens, source = self._held.popleft()
            self._held_size -= len(text)
            logprobs = (self._logprobs.popleft(),) if tokens and self._logprobs else ()
            if self._reader.thinking:
                self._reasoning_tokens += tokens
            else:
                self.untold += logprobs
            if text:
                if source is not None:
                    self._origins.push(without_shown(text), source)
                self._parts += self._claimed(self._reader.push(text))
                self._released.append(without_shown(text))

    def _claimed(self, parts: list[Part]) -> list[Part]:
        """`parts`, which one token brought, with the logprobs of all tokens since the last ones that brought any, and
        with what their words are made of."""
        parts = self._origins.claimed(parts)
        if not parts or not self.untold:
            return parts
        logprobs, self.untold = self.untold, ()
        for place, part in enumerate(parts):
            if isinstance(part, Words):
                parts[place] = replace(part, logprobs=logprobs)
                break  # where there are no words, they are of a thought or a call, which tell none
        return parts

    @property
    def text(self) -> str:
        """All text released so far: the joined texts of the pieces."""
        return "".join(self._released)

    @property
    def usage(self) -> Usage:
        """Token counts so far."""
        return Usage(self._prompt_tokens, self._kept, self._cached_tokens, self._reasoning_tokens)
