"""Where an accepted run becomes text, stop decisions, usage, logprobs and telemetry: once, for every protocol."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from paceline.engine.request import Delta, Finish, TokenLogprob

from .stop_strings import StopStrings

if TYPE_CHECKING:
    from .text_decoder import TextDecoder


class Vocabulary(Protocol):
    """What the committer asks of a tokenizer."""

    def decoder(self) -> TextDecoder:
        """A new incremental decoder, for one reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What one delta adds to the reply.

    `tokens` and `logprobs` are those the engine delivered with this delta and the reply keeps; `text` is what became
    certain with it, so text that was held back comes with the tokens of a later piece. `emitted` is `len(tokens)`, and
    over a reply it adds up to `usage.completion_tokens`.
    """

    text: str = ""
    tokens: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprob, ...] | None = None  # aligned with tokens
    finish: Finish | None = None
    cut: int | None = None  # the reply ends here though the engine went on: keep this many output tokens
    drafted: int = 0  # guesses verified in this step
    accepted: int = 0  # of these, the ones the reply keeps
    emitted: int = 0
    error: str | None = None  # with finish "error"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply. `completion_tokens` counts a stop id and the token that completed a stop string."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


class Committer:
    """One reply, from its deltas. Not thread safe; make one for each request and choice.

    The reply ends at the first of: a stop id (counted as a token, no text), a stop string, the engine's own finish.
    A stop string is looked for in the text and may lie anywhere in it: inside a token, across tokens, across deltas.
    The one that is complete first wins (the longest, if several are complete at once); text ends before it, and tokens,
    logprobs, usage and speculation figures end with the token that completed it. What comes after is dropped from all.

    Text that may be the beginning of a stop string is held back, by whole tokens, so that a marker that is one token
    is never split; it is released as soon as it cannot be one, or at the end. Every decision is made token by token:
    how the tokens are spread over deltas changes nothing but the pieces.
    """

    def __init__(
        self,
        tokenizer: Vocabulary,
        *,
        stop: Sequence[str] | StopStrings = (),
        stop_ids: Collection[int] = (),
        prompt_tokens: int,
        include_stop: bool = False,
    ) -> None:
        """`include_stop` keeps the stop string in the text. Raises RequestError for an empty stop string."""
        self._decoder = tokenizer.decoder()
        self._stops = stop if isinstance(stop, StopStrings) else StopStrings(stop)
        self._stop_ids = frozenset(stop_ids)
        self._include_stop = include_stop
        self._state = 0
        self._held: deque[str] = deque()  # texts of whole tokens, not yet released
        self._held_size = 0
        self._released: list[str] = []
        self._tokens: list[int] = []
        self._prompt_tokens = prompt_tokens
        self._cached_tokens = 0
        self._drafted = 0
        self._accepted = 0
        self._histogram = [0]
        self._finish: Finish | None = None

    def push(self, delta: Delta) -> Piece:
        """Commit one step. Once the reply is finished every further delta is dropped: an empty piece."""
        if self._finish is not None:
            return Piece()
        self._cached_tokens = max(self._cached_tokens, delta.cached_tokens)
        kept = len(delta.tokens)
        matched = stopped = False
        for index, token in enumerate(delta.tokens):
            stopped = token in self._stop_ids
            matched = not stopped and self._hold(self._decoder.push((token,)))
            if stopped or matched:
                kept = index + 1
                break
        finish: Finish | None = "stop" if stopped or matched else delta.finish
        if finish is not None and not matched:
            # The end of a character that was cut off is text too, and may complete a stop string.
            matched = self._hold(self._decoder.flush())
            finish = "stop" if matched else finish
        engine_ended = delta.finish == finish and kept == len(delta.tokens) and not matched
        return self._commit(delta, kept, finish, cut=finish is not None and not engine_ended)

    def close(self) -> Piece:
        """End a reply that was aborted: releases what is held back. An empty piece if it is already finished."""
        piece = self.push(Delta(request_id="", tokens=(), finish="abort"))
        return replace(piece, cut=None)

    def _commit(self, delta: Delta, kept: int, finish: Finish | None, *, cut: bool) -> Piece:
        self._finish = finish
        text = self._release(self._stops.pending(self._state) if finish is None else 0)
        tokens = delta.tokens[:kept]
        self._tokens.extend(tokens)
        accepted = min(delta.accepted, kept)
        if delta.drafted:
            self._drafted += delta.drafted
            self._accepted += accepted
            self._histogram += [0] * (delta.drafted + 1 - len(self._histogram))
            self._histogram[accepted] += 1
        return Piece(
            text=text,
            tokens=tokens,
            logprobs=None if delta.logprobs is None else delta.logprobs[:kept],
            finish=finish,
            cut=len(self._tokens) if cut else None,
            drafted=delta.drafted,
            accepted=accepted,
            emitted=kept,
            error=delta.error,
        )

    def _hold(self, text: str) -> bool:
        """Take in one token's text; True when a stop string is complete, its end then cut off."""
        self._state, read, match = self._stops.scan(self._state, text)
        if match:
            text = text[:read]
        if text:
            self._held.append(text)
            self._held_size += len(text)
        if match and not self._include_stop:
            # A match reaches back only into text that is still held: until now it was a possible beginning.
            held = "".join(self._held)
            self._held = deque([held[: len(held) - match]])
            self._held_size = len(self._held[0])
        return match > 0

    def _release(self, pending: int) -> str:
        """Let go of held tokens, except those that reach into the last `pending` characters."""
        ready: list[str] = []
        while self._held and self._held_size - len(self._held[0]) >= pending:
            text = self._held.popleft()
            self._held_size -= len(text)
            ready.append(text)
        text = "".join(ready)
        if text:
            self._released.append(text)
        return text

    @property
    def finish(self) -> Finish | None:
        """Why the reply ended; None while it goes on."""
        return self._finish

    @property
    def text(self) -> str:
        """All text released so far: the joined texts of the pieces."""
        return "".join(self._released)

    @property
    def tokens(self) -> tuple[int, ...]:
        """The output tokens the reply keeps so far."""
        return tuple(self._tokens)

    @property
    def usage(self) -> Usage:
        """Token counts so far."""
        return Usage(self._prompt_tokens, len(self._tokens), self._cached_tokens)

    @property
    def num_spec_steps(self) -> int:
        """Steps that verified at least one guess."""
        return sum(self._histogram)

    @property
    def num_draft_tokens(self) -> int:
        """Guesses verified."""
        return self._drafted

    @property
    def num_accepted_draft_tokens(self) -> int:
        """Guesses that became tokens the reply keeps."""
        return self._accepted

    @property
    def acceptance_histogram(self) -> tuple[int, ...]:
        """[i] counts the steps that kept i guesses; k + 1 entries, k being the most guesses verified in one step."""
        return tuple(self._histogram)

    @property
    def mean_acceptance_length(self) -> float:
        """Tokens of an average verified step, the bonus token included: 1 + accepted / steps; 1 without such a step."""
        return 1 + self._accepted / max(self.num_spec_steps, 1)

    @property
    def draft_acceptance_rate(self) -> float:
        """Accepted / drafted; 0 when nothing was drafted."""
        return self._accepted / max(self._drafted, 1)

    def speculation(self) -> dict[str, Any]:
        """The figures above under vLLM's names, with `num_spec_tokens` = k."""
        return {
            "mean_acceptance_length": self.mean_acceptance_length,
            "draft_acceptance_rate": self.draft_acceptance_rate,
            "acceptance_histogram": list(self._histogram),
            "num_spec_steps": self.num_spec_steps,
            "num_accepted_draft_tokens": self._accepted,
            "num_draft_tokens": self._drafted,
            "num_spec_tokens": len(self._histogram) - 1,
        }
