"""Even pacing: what one verify step brought at once leaves piece by piece until the next step is expected."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from .committer import Piece
from .origins import between
from .reply_parts import Words, spans_of
from .voice import Voice

_NEW = 0.25  # weight of the newest step's time in the estimate


class Pacer(Protocol):
    """When the pieces of one reply leave; all times in seconds of one clock."""

    def push(self, piece: Piece, now: float) -> Sequence[Piece]:
        """The next step's piece has come: what leaves now."""

    def due(self, now: float) -> Sequence[Piece]:
        """What waited until now."""

    def patience(self, now: float) -> float | None:
        """Seconds until something is due; None when nothing waits."""

    def flush(self) -> Sequence[Piece]:
        """All that waits leaves now."""


class Straight:
    """Nothing waits."""

    def push(self, piece: Piece, now: float) -> Sequence[Piece]:
        return (piece,)

    def due(self, now: float) -> Sequence[Piece]:
        return ()

    def patience(self, now: float) -> float | None:
        return None

    def flush(self) -> Sequence[Piece]:
        return ()


class Even:
    """Spreads the tokens of a step over the expected time to the next one.

    The reply's first text and its last piece leave at once, and so does whatever still waits when the next piece
    comes: nothing is later than by one step. Only plain text is spread: a call, a thought or a marker is not spoken.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[float, Piece]] = deque()
        self._began = False  # text has left
        self._last: float | None = None  # when the last step's tokens came
        self._step: float | None = None  # expected time between steps

    def push(self, piece: Piece, now: float) -> Sequence[Piece]:
        out = list(self.flush())
        if piece.tokens:
            if self._last is not None:
                gap = now - self._last
                self._step = gap if self._step is None else self._step + _NEW * (gap - self._step)
            self._last = now
        shares = split(piece) if self._began and self._step is not None and piece.finish is None else [piece]
        self._began = self._began or bool(piece.text)
        interval = (self._step or 0.0) / len(shares)
        self._waiting.extend((now + number * interval, share) for number, share in enumerate(shares))
        return [*out, *self.due(now)]

    def due(self, now: float) -> Sequence[Piece]:
        out = []
        while self._waiting and self._waiting[0][0] <= now:
            out.append(self._waiting.popleft()[1])
        return out

    def patience(self, now: float) -> float | None:
        return max(0.0, self._waiting[0][0] - now) if self._waiting else None

    def flush(self) -> Sequence[Piece]:
        out = [piece for _, piece in self._waiting]
        self._waiting.clear()
        return out


def pacer_for(voice: Voice) -> Pacer:
    return Even() if voice.pace else Straight()


def split(piece: Piece) -> list[Piece]:
    """A piece of plain text as one for each token whose text it has; joined they are the piece.

    Guesses, the trace and whatever else is counted once a step stay with the first. Others come back whole.
    """
    if len(piece.text_ends) < 2 or piece.parts != (Words(piece.text),) or piece.finish is not None:
        return [piece]
    spans = spans_of(piece.parts[0])
    shares = []
    count = len(piece.text_ends)
    for number, (start, end) in enumerate(zip((0, *piece.text_ends), piece.text_ends, strict=False)):
        text = piece.text[start:end]
        whose = slice(number, number + 1 if number < count - 1 else None)  # text may come later than its tokens
        share = replace(
            piece,
            text=text,
            parts=(Words(text, spans=None if spans is None else between(spans, start, end)),),
            text_ends=(len(text),),
            tokens=piece.tokens[whose],
            logprobs=None if piece.logprobs is None else piece.logprobs[whose],
        )
        shares.append(share if number == 0 else replace(share, drafted=0, accepted=0, step=None))
    return shares
