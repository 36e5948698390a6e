"""The format of Hermes (Nous Research) and Qwen: each call is JSON between a pair of tags."""

from __future__ import annotations

from collections.abc import Collection

from ..text_decoder import Shown
from .call_json import read_calls
from .telling import Chars, Telling, literal, space
from .tool_format import ToolFormat


class Hermes(ToolFormat):
    """`<tool_call>\\n{"name": …, "arguments": {…}}\\n</tool_call>`, repeated for more calls.

    Some models put a list of calls between the tags.
    """

    mark = "<tool_call>"

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self._end = shown.spelling("</tool_call>")

    def read(self, tell: Telling, known: Collection[str] | None) -> Chars[None]:
        yield from read_calls(tell, (yield from space()), known)
        yield from literal(self._end, (yield from space()))
