"""The format of Qwen 3 Coder: calls as tags, one for each argument."""

from __future__ import annotations

import json
from typing import Any

import orjson

from paceline.engine.errors import RequestError

from ..fields import JsonObject
from ..reply_format import json_lark
from ..stop_strings import StopStrings
from ..text_decoder import Shown
from ..tool_use import Tool
from . import lark
from .telling import Chars, NotACallError, Telling, literal, space
from .tool_format import ToolFormat

_BOUNDS = ("enum", "const", "pattern", "format", "minLength", "maxLength")  # of texts, in a schema
_VALUE_END = StopStrings(("</parameter>",))


class QwenCoder(ToolFormat):
    """`<tool_call>\\n<function=name>\\n<parameter=key>\\nvalue\\n</parameter>\\n</function>\\n</tool_call>`.

    The arguments are told as the JSON object they mean: a value is text where the tool's schema says so, or where it is
    no JSON.
    """

    mark = "<tool_call>"

    def __init__(self, shown: Shown) -> None:
        super().__init__(shown)
        self._end = shown.spelling("</tool_call>")

    def read(self, tell: Telling, *, any_name: bool) -> Chars[None]:
        yield from literal("<function=", (yield from space()))
        name = yield from _name()
        types = _types(tell, name)
        tell.begin(name)
        before = "{"
        while True:
            yield from literal("<", (yield from space()))
            char = yield
            if char == "/":
                break
            yield from literal("parameter=", char)
            key = yield from _name()
            value = yield from _value()
            written = value if types.get(key) != "string" and _is_json(value) else json.dumps(value, ensure_ascii=False)
            tell.arguments(f"{before}{json.dumps(key, ensure_ascii=False)}: {written}")
            before = ", "
        yield from literal("/function>", char)
        tell.arguments("{}" if before == "{" else "}")
        tell.end()
        yield from literal(self._end, (yield from space()))

    def rules(self, tool: Tool, rule: str) -> list[str]:
        """Arguments in the order of the schema; those it does not require may be left out."""
        schema = tool.schema or {}
        required = schema.get("required")
        rules, places = [], []
        for place, (key, wanted) in enumerate(_properties(tool).items()):
            head = lark.text(f"<parameter={key}>\n")
            texts = _texts(wanted)
            if wanted.get("type") == "string" and not texts:
                _refuse_bounds(tool, key, wanted)
                rules.append(lark.up_to(f"{rule}_{place}_value", "\n</parameter>", self.shown))
                rules.append(f'{rule}_{place}: {head} {rule}_{place}_value "\\n"')
            else:
                shared: JsonObject = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
                value = " | ".join(map(lark.text, texts)) or json_lark(
                    {**shared, **wanted}, strict=tool.strict or False
                )
                rules.append(f"{rule}_{place}_value: {value}")
                rules.append(f'{rule}_{place}: {head} {rule}_{place}_value "\\n</parameter>\\n"')
            places.append(f"{rule}_{place}" + ("" if isinstance(required, list) and key in required else "?"))
        head = lark.text(f"<function={tool.name}>\n")
        return [f'{rule}: {head} {" ".join(places)} "</function>"', *rules]

    def block(self, *, parallel: bool) -> str:
        return f'"\\n" call "\\n" {lark.mark(self._end, self.shown)}'


def _name() -> Chars[str]:
    """What stands before the end of a tag."""
    name = ""
    while (char := (yield)) and char not in ">\n":
        name += char
    if not name or char != ">":
        raise NotACallError(char)
    return name


def _value() -> Chars[str]:
    """An argument as it is written, without the line breaks next to its tags."""
    text: list[str] = []
    state = size = 0
    while not size:
        char = yield
        if not char:
            raise NotACallError(char)
        text.append(char)
        state, _, size = _VALUE_END.scan(state, char)
    return "".join(text[:-size]).removeprefix("\n").removesuffix("\n")


def _types(tell: Telling, name: str) -> dict[str, Any]:
    """The type of each argument, as far as the tool's schema tells."""
    tool = tell.tools.get(name)
    return {} if tool is None else {key: value.get("type") for key, value in _properties(tool).items()}


def _properties(tool: Tool) -> dict[str, JsonObject]:
    """The schema of each argument; clients may send anything for one."""
    properties = (tool.schema or {}).get("properties")
    if not isinstance(properties, dict):
        return {}
    return {key: value for key, value in properties.items() if isinstance(value, dict)}


def _texts(wanted: JsonObject) -> list[str]:
    """The only values of an argument that is text, [] where it may be any."""
    values = wanted.get("enum", [wanted["const"]] if "const" in wanted else None)
    if wanted.get("type") != "string" or not isinstance(values, list):
        return []
    return [value for value in values if isinstance(value, str)]


def _refuse_bounds(tool: Tool, key: str, wanted: JsonObject) -> None:
    """Raises RequestError for a strict tool whose schema says more of a text than that it is one."""
    said = next((name for name in _BOUNDS if name in wanted), None)
    if tool.strict and said is not None:
        raise RequestError(
            f"tools cannot be followed: {said} of {key[:64]!r} in {tool.name!r} cannot be enforced, since this model "
            "writes texts as they are; leave it out, or send the tool without strict.",
            param="tools",
            code="invalid_grammar",
        )


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)  # which ends at a depth of its own: json's depends on who calls it, and is no ValueError
    except ValueError:
        return False
    return True
