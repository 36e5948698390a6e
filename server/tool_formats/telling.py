"""What reading a reply character by character needs: what was read and is not yet told, and what was told."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from ..reply_parts import CallArguments, CallBegin, Part, Thought, Words, joined
from ..text_decoder import without_shown
from ..tool_use import Tool

T = TypeVar("T")
Chars = Generator[None, str, T]  # a parser: it is sent one character after the other, "" for the end of the reply


class NotACallError(Exception):
    """What was read is no tool call after all. char: the one that did not fit, "" at the end of the reply."""

    def __init__(self, char: str) -> None:
        super().__init__(char)
        self.char = char


class Telling:
    """Shared by the parsers of one reply. `held` is what was read and not told; `again` is to be read once more.

    `passing` saves time and changes nothing: a parser that holds nothing and would tell every character that the
    pattern matches may leave them to whoever feeds it, who tells them together. It is set anew for each character.
    """

    def __init__(self, tools: Sequence[Tool], *, parallel: bool, key: str, call_id: Callable[[str], str]) -> None:
        """parallel: more than one call. key: of the reply, for the ids of its calls; call_id: makes one of a digest."""
        self.tools = {tool.name: tool for tool in tools}
        self.held = ""
        self.again = ""
        self.passing: tuple[re.Pattern[str], Callable[[str], None]] | None = None
        self.thinking = False
        self.begun = 0  # calls whose name was told
        self.whole = 0  # calls that were read to their end
        self._parallel = parallel
        self._key = key
        self._call_id = call_id
        self._parts: list[Part] = []

    @property
    def enough(self) -> bool:
        """True when nothing may follow the calls so far."""
        return bool(self.whole) and not self._parallel

    def words(self, keep: int = 0) -> None:
        """What is held, but for its last `keep` characters, is for the reader of the reply."""
        size = len(self.held) - keep
        if size:
            self._parts.append(Words(self.held[:size]))
            self.held = self.held[size:]

    def thought(self, size: int) -> None:
        """The first `size` characters held are thought."""
        if size:
            self._parts.append(Thought(self.held[:size]))
            self.held = self.held[size:]

    def put_words(self, text: str) -> None:
        self._parts.append(Words(text))

    def put_thought(self, text: str) -> None:
        self._parts.append(Thought(text))

    def begin(self, name: str) -> None:
        """A call begins; what is held was its markup."""
        digest = hashlib.sha256(f"{self._key} {self.begun}".encode()).hexdigest()
        self._parts.append(CallBegin(self.begun, self._call_id(digest), name))
        self.begun += 1
        self.held = ""

    def arguments(self, text: str) -> None:
        """Of the call begun last."""
        self._parts.append(CallArguments(self.begun - 1, text))
        self.held = ""

    def end(self) -> None:
        """The call begun last is whole."""
        self.whole += 1
        self.held = ""

    def read_again(self) -> None:
        """Somebody else is to read what is held."""
        self.again, self.held = self.held, ""

    def take(self) -> list[Part]:
        """What was told since the last time, special tokens left out."""
        told, self._parts = joined(self._parts), []
        out: list[Part] = []
        for part in told:
            match part:
                case Words(text) | Thought(text) if text := without_shown(text):
                    out.append(type(part)(text))
                case CallArguments(index, text) if text := without_shown(text):
                    out.append(CallArguments(index, text))
                case CallBegin():
                    out.append(part)
        return joined(out)


def space() -> Chars[str]:
    """Reads white space; returns the character behind it. NotACallError at the end of the reply."""
    while (char := (yield)).isspace():
        pass
    if not char:
        raise NotACallError(char)
    return char


def literal(text: str, char: str) -> Chars[None]:
    """Reads exactly `text`, whose first character, `char`, was read already. Raises NotACallError."""
    for index, wanted in enumerate(text):
        if index:
            char = yield
        if char != wanted:
            raise NotACallError(char)
