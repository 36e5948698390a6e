"""The format of Llama 3: a reply that is nothing but a call is JSON, with or without a mark before it."""

from __future__ import annotations

from collections.abc import Collection

from .call_json import read_call
from .telling import Chars, Telling, space
from .tool_format import ToolFormat


class Llama(ToolFormat):
    """`{"name": …, "parameters": {…}}`, more of them behind `;`, `<|python_tag|>` before the first or not."""

    mark = "<|python_tag|>"
    bare = True

    def read(self, tell: Telling, known: Collection[str] | None) -> Chars[None]:
        char = yield from space()
        if char == ";" and tell.whole:
            char = yield from space()
        yield from read_call(tell, char, known)
