"""The formats of Mistral: behind one special token a list of calls, or one call's name and arguments."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from ..fields import JsonObject
from ..text_decoder import Shown
from ..tool_use import Tool
from . import lark
from .call_json import read_calls, read_object
from .telling import Chars, NotACallError, Telling, literal, space
from .tool_format import ToolFormat

_ID = re.compile(r"[a-zA-Z0-9]{9}")


class Mistral(ToolFormat):
    """`[TOOL_CALLS] [{"name": …, "arguments": {…}}, …]`, or newer `[TOOL_CALLS]name[ARGS]{…}`, repeated."""

    mark = "[TOOL_CALLS]"
    between = '""'

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self._id_mark = shown.spelling("[CALL_ID]")
        self._arguments_mark = shown.spelling("[ARGS]")
        self.several = self._newer = shown.token(self._arguments_mark) is not None

    def read(self, tell: Telling, *, any_name: bool) -> Chars[None]:
        char = yield from space()
        yield from read_calls(tell, char, any_name=any_name) if char in "[{" else self._named(tell, char)

    def _named(self, tell: Telling, char: str) -> Chars[None]:
        name = ""
        while char.isalnum() or char in ("_", "-", "."):
            name += char
            char = yield
        if not name:
            raise NotACallError(char)
        if char == self._id_mark:  # only ever a special token
            char = yield
            while char.isalnum():
                char = yield
        if char != "{":
            yield from literal(self._arguments_mark, char)
            char = yield from space()
        if char != "{":
            raise NotACallError(char)
        tell.begin(name)
        yield from read_object(tell, char, tell.arguments)
        tell.end()

    def rules(self, tool: Tool, rule: str) -> list[str]:
        arguments = f"{rule}_arguments: {lark.arguments(tool)}"
        if self._newer:
            mark = lark.mark(self._arguments_mark, self.shown)
            return [f"{rule}: {lark.text(tool.name)} {mark} {rule}_arguments", arguments]
        head = lark.text(f'{{"name": "{tool.name}", "arguments": ')
        return [f'{rule}: {head} {rule}_arguments "}}"', arguments]

    def block(self, *, parallel: bool) -> str:
        if self._newer:
            return "call"
        more = ' (", " call)*' if parallel else ""
        return f'" "? "[" call{more} "]"'

    def call_id(self, digest: str) -> str:
        """Templates of Mistral refuse ids of any other shape."""
        return digest[:9]

    def messages(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject]) -> list[JsonObject]:
        return [_with_short_ids(message) for message in messages]


def _with_short_ids(message: JsonObject) -> JsonObject:
    out = dict(message)
    if isinstance(id_ := message.get("tool_call_id"), str):
        out["tool_call_id"] = _short(id_)
    if calls := message.get("tool_calls"):
        out["tool_calls"] = [{**call, "id": _short(call.get("id") or "")} for call in calls]
    return out


def _short(id_: str) -> str:
    """The id itself where its shape fits, else nine characters that are always the same for it."""
    return id_ if _ID.fullmatch(id_) else sha256(id_.encode(errors="surrogatepass")).hexdigest()[:9]
