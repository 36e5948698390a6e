"""From which tokens, and so from whose guesses, the words of a reply come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .reply_parts import Part, Span, Words


class Origins:
    """Follows the texts of tokens through a reader, which swallows marks and holds back what may become one."""

    def __init__(self) -> None:
        self._text = ""  # that no part has told yet
        self._spans: tuple[Span, ...] = ()  # of it
        self._pushed: list[tuple[str, str]] = []  # behind it: a reader may hold thousands of tokens back

    def push(self, text: str, source: str) -> None:
        """A token's text goes to the reader. source: the drafters who guessed it, "" for the model's own."""
        self._pushed.append((text, source))

    def claimed(self, parts: list[Part]) -> list[Part]:
        """What the reader told since the last push, with what its words are made of.

        Words are the next of the text, or the last of it where something else was told or a mark was swallowed before
        them; any others are not simply the tokens' text.
        """
        if not parts:
            return parts
        self._take_in()
        if not self._spans:
            return parts
        out: list[Part] = []
        behind = False
        for part in parts:
            if isinstance(part, Words):
                part = replace(part, spans=self._taken(part.text, behind))
            behind = behind or not isinstance(part, Words)
            out.append(part)
        if not isinstance(out[-1], Words):
            self._drop(len(self._text))
        return out

    def _take_in(self) -> None:
        self._text += "".join(text for text, _ in self._pushed)
        self._spans += tuple((len(text), source) for text, source in self._pushed)
        self._pushed.clear()

    def _taken(self, text: str, behind: bool) -> tuple[Span, ...] | None:
        whole = self._text
        if whole.startswith(text) and not behind:
            start = 0
        elif whole.endswith(text):
            start = len(whole) - len(text)
        else:
            self._drop(len(whole))
            return None
        spans = between(self._spans, start, start + len(text))
        self._drop(start + len(text))
        return spans

    def _drop(self, end: int) -> None:
        self._spans = between(self._spans, end, len(self._text))
        self._text = self._text[end:]


def between(spans: Sequence[Span], start: int, end: int) -> tuple[Span, ...]:
    """The spans of text[start:end], given those of the text; none is empty."""
    out = []
    at = 0
    for size, source in spans:
        inside = min(at + size, end) - max(at, start)
        if inside > 0:
            out.append((inside, source))
        at += size
    return tuple(out)
