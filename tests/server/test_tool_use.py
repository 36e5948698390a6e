from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.fields import Fields
from paceline.server.tool_use import NO_TOOLS, Tool, ToolUse, read_tools

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
NESTED = {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}}
FLAT = {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True}
G = {"type": "function", "name": "g"}
TOOL_F, TOOL_G = Tool(name="f", description="d", schema=SCHEMA, strict=True), Tool(name="g")


def read(body: dict[str, Any], base: ToolUse = NO_TOOLS) -> ToolUse:
    return read_tools(Fields(body), base)


@pytest.mark.parametrize("tool", [NESTED, FLAT])
def test_both_spellings_of_a_tool(tool: dict[str, Any]) -> None:
    assert read({"tools": [tool, G]}).tools == (TOOL_F, TOOL_G)
    body = TOOL_F.body()
    assert body == {"type": "function", "function": {key: NESTED["function"][key] for key in body["function"]}}
    assert TOOL_G.body() == {"type": "function", "function": {"name": "g"}}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("none", ToolUse(choice="none")),
        ("auto", ToolUse()),
        ("required", ToolUse(choice="required")),
        ({"type": "function", "function": {"name": "g"}}, ToolUse(choice="named", only="g")),
        ({"type": "function", "name": "g"}, ToolUse(choice="named", only="g")),
    ],
)
def test_both_spellings_of_a_choice(choice: Any, expected: ToolUse) -> None:
    use = read({"tools": [FLAT, G], "tool_choice": choice, "parallel_tool_calls": False})
    assert use == replace(expected, tools=(TOOL_F, TOOL_G), parallel=False)
    assert use.offered == (() if choice == "none" else (TOOL_F, TOOL_G))
    assert use.callable == ((TOOL_G,) if use.choice == "named" else use.offered)
    assert use.forced == (use.choice in ("required", "named"))


@pytest.mark.parametrize("nested", [True, False])
def test_a_choice_among_some_tools(nested: bool) -> None:
    allowed = {"mode": "required", "tools": [{"type": "function", "name": "g"}]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed} if nested else {"type": "allowed_tools", **allowed}
    assert read({"tools": [FLAT, G], "tool_choice": choice}) == ToolUse(tools=(TOOL_G,), choice="required")


def test_what_is_absent_stays() -> None:
    base = ToolUse(tools=(TOOL_F,), choice="named", only="f", parallel=False)
    assert read({}, base) == read(dict.fromkeys(("tools", "tool_choice", "parallel_tool_calls")), base) == base
    assert read({"tool_choice": "auto"}, base) == replace(base, choice="auto", only="")
    assert read({"tools": [], "tool_choice": "none"}, base) == ToolUse(choice="none", parallel=False)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": ["f"]}, "tools[0]"),
        ({"tools": [{"name": "f"}]}, "tools[0].type"),
        ({"tools": [{"type": "function"}]}, "tools[0].name"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        ({"tools": [{"type": "function", "function": "f"}]}, "tools[0].function"),
        ({"tools": [G, {**G, "name": "a b"}]}, "tools[1].name"),
        ({"tools": [{**G, "name": "g" * 65}]}, "tools[0].name"),
        ({"tools": [{**G, "name": ""}]}, "tools[0].name"),
        ({"tools": [FLAT, G, NESTED]}, "tools[2].function.name"),
        ({"tools": [{**G, "parameters": "{}"}]}, "tools[0].parameters"),
        ({"tools": [{**G, "description": 1}]}, "tools[0].description"),
        ({"tools": [{**G, "strict": "yes"}]}, "tools[0].strict"),
        ({"tools": [{**G, "name": f"g{i}"} for i in range(129)]}, "tools"),
        ({"tools": [G], "tool_choice": "any"}, "tool_choice"),
        ({"tools": [G], "tool_choice": 1}, "tool_choice"),
        ({"tools": [G], "tool_choice": {}}, "tool_choice.type"),
        ({"tools": [G], "tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"tools": [G], "tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice"),
        ({"tools": [G], "parallel_tool_calls": 1}, "parallel_tool_calls"),
        ({"tools": [G], "tool_choice": {"type": "allowed_tools", "mode": "all"}}, "tool_choice.mode"),
        ({"tools": [G], "tool_choice": {"type": "allowed_tools", "tools": [FLAT]}}, "tool_choice.tools"),
    ],
)
def test_mistakes_name_the_field(body: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read(body)
    assert caught.value.param == param
    assert str(caught.value).startswith(param)
    assert str(caught.value).endswith(".")


def test_other_types_of_tools_are_not_supported() -> None:
    with pytest.raises(ApiError) as caught:
        read({"tools": [{"type": "web_search"}]})
    assert (caught.value.code, caught.value.param) == ("unsupported", "tools[0].type")
