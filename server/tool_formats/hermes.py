"""The format of Hermes (Nous Research) and Qwen: each call is JSON between a pair of tags."""

from __future__ import annotations

from ..text_decoder import Shown
from ..tool_use import Tool
from . import lark
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

    def read(self, tell: Telling, *, any_name: bool) -> Chars[None]:
        yield from read_calls(tell, (yield from space()), any_name=any_name)
        yield from literal(self._end, (yield from space()))

    def rules(self, tool: Tool, rule: str) -> list[str]:
        head = lark.text(f'{{"name": "{tool.name}", "arguments": ')
        return [f'{rule}: {head} {rule}_arguments "}}"', f"{rule}_arguments: {lark.arguments(tool)}"]

    def block(self, *, parallel: bool) -> str:
        return f'"\\n" call "\\n" {lark.mark(self._end, self.shown)}'
