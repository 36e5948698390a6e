"""Pieces of grammars in llguidance's dialect of Lark."""

from __future__ import annotations

import json
import re

from ..reply_format import json_lark
from ..text_decoder import Shown
from ..tool_use import Tool


def text(value: str) -> str:
    """Exactly this text."""
    return json.dumps(value, ensure_ascii=False)


def mark(spelling: str, shown: Shown) -> str:
    """A mark as readers see it: its token where it is a special one, else its text."""
    token = shown.token(spelling)
    return text(spelling) if token is None else f"<[{token}]>"


def up_to(rule: str, spelling: str, shown: Shown) -> str:
    """The rule `rule`: anything, and the mark that ends it."""
    token = shown.token(spelling)
    if token is None:
        ending = re.escape(spelling).replace("/", "\\/").replace("\n", "n")
        return f"{rule}[lazy]: /(.|\\n)*{ending}/"
    return f"{rule}: /(.|\\n)*/ <[{token}]>"


def arguments(tool: Tool) -> str:
    """The right side of a rule for the arguments of `tool`, as JSON. What of a schema cannot be enforced is left to the
    model, but for strict tools."""
    return json_lark({**(tool.schema or {}), "type": "object"}, strict=tool.strict or False)
