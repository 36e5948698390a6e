"""What a reply is made of, once its text is read as the model means it: words, thoughts, tool calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from paceline.engine.request import TokenLogprob

Span = tuple[int, str]
"""One token's share of a text: its code points, and the drafters who guessed the token, "" for the model's own."""


@dataclass(frozen=True, slots=True)
class Words:
    """Text for the reader of the reply. logprobs: of the tokens that became it, where they were asked for. spans: of
    what it is made, in order; None where nobody asked, or it is not simply the tokens' text."""

    text: str
    logprobs: tuple[TokenLogprob, ...] = field(default=(), compare=False)
    spans: tuple[Span, ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Thought:
    """Text the model wrote for itself, without the tags around it."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBegin:
    """A tool call begins; `index` counts the calls of a reply from 0, `id` is told to the client."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallArguments:
    """A piece of the arguments of call `index`: joined they are one JSON text."""

    index: int
    text: str


Part = Words | Thought | CallBegin | CallArguments


def joined(parts: Iterable[Part]) -> list[Part]:
    """The same with neighbours of one kind made one."""
    out: list[Part] = []
    for part in parts:
        match out[-1:], part:
            case [Words(before, known, left)], Words(text, more, right):
                spans = None if left is None or right is None else left + right
                out[-1] = Words(before + text, known + more, spans)
            case [Thought(before)], Thought(text):
                out[-1] = Thought(before + text)
            case [CallArguments(call, before)], CallArguments(index, text) if call == index:
                out[-1] = CallArguments(index, before + text)
            case _:
                out.append(part)
    return out


def spans_of(part: Part) -> tuple[Span, ...] | None:
    """Only words have any."""
    return part.spans if isinstance(part, Words) else None


class PartReader(Protocol):
    """Reads one reply. How its text is cut into pieces changes nothing but where the parts are cut."""

    @property
    def called(self) -> bool:
        """True once a whole tool call was read."""

    @property
    def thinking(self) -> bool:
        """True while what comes next is thought."""

    @property
    def over(self) -> bool:
        """True once the reply ends here, though the model may write on: what is pushed now is dropped."""

    def push(self, text: str) -> list[Part]:
        """What the text so far determines and was not returned before."""

    def close(self) -> list[Part]:
        """The end of the reply: what was held back because it could have become a marker."""


class PlainReader:
    """Every character is for the reader of the reply."""

    called = False
    thinking = False
    over = False

    def push(self, text: str) -> list[Part]:
        return [Words(text)] if text else []

    def close(self) -> list[Part]:
        return []
