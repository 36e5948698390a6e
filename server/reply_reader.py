"""Reads a reply as the model means it: thoughts first, then words with tool calls among them."""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Callable, Sequence

from .prepared import plain_reader
from .reply_parts import Part, PartReader
from .stop_strings import StopStrings
from .thinking import Tags
from .tool_formats.telling import Chars, NotACallError, Telling
from .tool_formats.tool_format import ToolFormat
from .tool_use import Tool, ToolUse


def readers(
    tags: Tags | None,
    format: ToolFormat,  # noqa: A002 - the field's term
    use: ToolUse,
    *,
    prompt: Sequence[int],
    opened: bool,
) -> Callable[[int], PartReader]:
    """What makes the reader of a choice from its seed. The ids of calls follow from prompt and seed: a reply that is
    played again has the same, and those of two turns of a conversation differ."""
    if tags is None and not use.offered:
        return plain_reader
    digest = hashlib.sha256(array("q", prompt).tobytes()).hexdigest() if use.offered else ""

    def reader(seed: int) -> PartReader:
        return ReplyReader(
            tags=tags,
            opened=opened,
            format=format if use.offered else None,
            tools=use.offered,
            parallel=use.parallel,
            key=f"{digest} {seed}",
        )

    return reader


class ReplyReader:
    """A `PartReader`. Every character is looked at once; only what may still become a mark is held back.

    White space next to the tags of a thought and behind a call belongs to the markup. What begins like a call and turns
    out to be none comes out as the words it is; a call whose name was told by then stays as it is, without an end.
    """

    def __init__(
        self,
        *,
        tags: Tags | None,
        opened: bool,
        format: ToolFormat | None,  # noqa: A002 - the field's term
        tools: Sequence[Tool] = (),
        parallel: bool = True,
        key: str = "",
    ) -> None:
        """tags: those of a thought, if the model thinks; opened: the prompt ends with the opening tag. format: how
        calls are written, None when there are none; tools: those that were offered. key: the ids of the calls follow
        from it.
        """
        self._tags = tags
        self._format = format
        self._tell = Telling(tools, parallel=parallel, key=key, call_id=format.call_id if format else str)
        self._tell.thinking = opened
        self._marks = StopStrings((format.marker,) if format else ())
        self._unmarked = re.compile(f"[^{re.escape(format.marker[0])}]+" if format else r"(?s:.)+")
        self.over = False
        self._parser = self._reply()
        next(self._parser)

    @property
    def called(self) -> bool:
        return self._tell.whole > 0

    @property
    def thinking(self) -> bool:
        return self._tell.thinking

    def push(self, text: str) -> list[Part]:
        self._feed(text)
        return self._tell.take()

    def close(self) -> list[Part]:
        if not self.over:
            self._send("")
        while self._tell.again and not self.over:
            self._feed("")
            self._send("")
        return self._tell.take()

    def _feed(self, text: str) -> None:
        tell, place = self._tell, 0
        while not self.over:
            if tell.again:
                text, place, tell.again = tell.again + text[place:], 0, ""
            if place == len(text):
                return
            if tell.passing is not None and (many := tell.passing[0].match(text, place)):
                tell.passing[1](many[0])
                place = many.end()
            else:
                self._send(text[place])
                place += 1

    def _send(self, char: str) -> None:
        self._tell.held += char
        self._tell.passing = None
        try:
            self._parser.send(char)
        except StopIteration:
            self.over = True

    def _reply(self) -> Chars[None]:
        if self._tags is not None:
            yield from self._thought(self._tags)
        if self._format is not None and self._format.bare:
            yield from self._calls(self._format, any_name=False)
        while not self._tell.enough and (yield from self._text()) and self._format is not None:
            yield from self._calls(self._format, any_name=True)

    def _calls(self, format: ToolFormat, *, any_name: bool) -> Chars[None]:  # noqa: A002
        while (yield from self._call(format, any_name=any_name)) and format.bare and not self._tell.enough:
            pass

    def _text(self) -> Chars[bool]:
        """Words up to a mark, True; or to the end of the reply."""
        tell, state = self._tell, 0
        tell.passing = (self._unmarked, tell.put_words)
        while char := (yield):
            state, _, size = self._marks.scan(state, char)
            if size:
                tell.words(keep=size)
                return True
            tell.words(keep=self._marks.pending(state))
            if not tell.held:
                tell.passing = (self._unmarked, tell.put_words)
        tell.words()
        return False

    def _call(self, format: ToolFormat, *, any_name: bool) -> Chars[bool]:  # noqa: A002
        """What the format makes of the text from here on; False when that was no call, or only the beginning of one."""
        tell = self._tell
        begun = tell.begun
        try:
            yield from format.read(tell, any_name=any_name)
        except NotACallError as error:
            if begun < tell.begun:
                tell.held = error.char  # the rest was markup
            tell.words(keep=len(error.char))
            tell.read_again()
            return False
        tell.held = ""
        if not tell.enough:
            yield from self._space()
        return True

    def _space(self) -> Chars[None]:
        """Drops white space; what stands behind it is left to the next parser."""
        while (yield).isspace():
            self._tell.held = ""
        self._tell.read_again()

    def _thought(self, tags: Tags) -> Chars[None]:
        """The thought a reply begins with, if it does."""
        tell = self._tell
        if not (yield from self._opening(tags.open)) and not tell.thinking:
            return
        tell.thinking = True
        yield from self._space()
        closing, state = StopStrings((tags.close,)), 0
        inside = re.compile(rf"[^\s{re.escape(tags.close[0])}]+")
        while char := (yield):
            state, _, size = closing.scan(state, char)
            kept = size or closing.pending(state)
            tell.thought(len(tell.held[: len(tell.held) - kept].rstrip()))
            if not tell.held:
                tell.passing = (inside, tell.put_thought)
            if size:
                tell.held = ""
                tell.thinking = False
                yield from self._space()
                return
        tell.thought(len(tell.held))
        tell.thinking = False

    def _opening(self, tag: str) -> Chars[bool]:
        """True when the reply begins with the tag; else what was read is read again."""
        while (char := (yield)).isspace():
            pass
        for index, wanted in enumerate(tag):
            if index:
                char = yield
            if char != wanted:
                self._tell.read_again()
                return False
        self._tell.held = ""
        return True
