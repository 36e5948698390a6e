"""The format of Llama 3: a reply that is nothing but a call is JSON, with or without a mark before it."""

from __future__ import annotations

from ..tool_use import Tool
from . import lark
from .call_json import read_call
from .telling import Chars, Telling, space
from .tool_format import ToolFormat


class Llama(ToolFormat):
    """`{"name": …, "parameters": {…}}`, more of them behind `;`, `<|python_tag|>` before the first or not."""

    mark = "<|python_tag|>"
    bare = True
    several = False

    def read(self, tell: Telling, *, any_name: bool) -> Chars[None]:
        char = yield from space()
        if char == ";" and tell.whole:
            char = yield from space()
        yield from read_call(tell, char, any_name=any_name)

    def rules(self, tool: Tool, rule: str) -> list[str]:
        head = lark.text(f'{{"name": "{tool.name}", "parameters": ')
        return [f'{rule}: {head} {rule}_arguments "}}"', f"{rule}_arguments: {lark.arguments(tool)}"]

    def block(self, *, parallel: bool) -> str:
        return 'call ("; " call)*' if parallel else "call"
