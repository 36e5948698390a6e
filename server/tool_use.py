"""The tools a reply may call: the same for every protocol, however each spells them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal, NoReturn

from paceline.engine.errors import RequestError

from .api_errors import not_supported
from .fields import Fields, JsonObject, describe

MAX_TOOLS = 128
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Choice = Literal["auto", "none", "required", "named"]
_CHOICES: dict[str, Choice] = {"auto": "auto", "none": "none", "required": "required"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the client offers. schema: the JSON schema of its arguments, None for anything."""

    name: str
    description: str | None = None
    schema: JsonObject | None = None
    strict: bool | None = None  # arguments must fit the schema, whatever the model would write; None: nothing is said

    def body(self) -> JsonObject:
        """As chat templates and chat completions spell it."""
        function: JsonObject = {"name": self.name}
        if self.description is not None:
            function["description"] = self.description
        if self.schema is not None:
            function["parameters"] = self.schema
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """choice: "auto" leaves it to the model, "required" wants at least one call, "named" one of `only`."""

    tools: tuple[Tool, ...] = ()
    choice: Choice = "auto"
    only: str = ""  # the tool's name, with "named"
    parallel: bool = True  # more than one call in one reply
    strict_unless_said: bool = False  # a tool of which nothing is said is held to as much as its schema allows

    @property
    def offered(self) -> tuple[Tool, ...]:
        """The tools the model is told of."""
        return () if self.choice == "none" else self.tools

    @property
    def callable(self) -> tuple[Tool, ...]:
        """The tools a call that must come may be of."""
        return tuple(tool for tool in self.offered if self.choice != "named" or tool.name == self.only)

    @property
    def held(self) -> bool:
        """True when calls that the model begins have to fit their schemas."""
        return any(tool.strict or (tool.strict is None and self.strict_unless_said) for tool in self.offered)

    @property
    def forced(self) -> bool:
        """True when the reply has to be a call."""
        return self.choice in ("required", "named")

    def flat_choice(self) -> str | JsonObject:
        """`tool_choice` as the Realtime and Responses APIs spell it."""
        return {"type": "function", "name": self.only} if self.choice == "named" else self.choice


NO_TOOLS = ToolUse()


def read_tools(fields: Fields, base: ToolUse) -> ToolUse:
    """`base` with what `tools`, `tool_choice` and `parallel_tool_calls` change.

    Both spellings are read: chat completions put what a function is into a `function` object, the Realtime and
    Responses APIs beside the type. Raises RequestError, naming the field, or ApiError for another type of tool.
    """
    use = base
    if fields.has("tools"):
        use = replace(use, tools=_read_list(fields))
    if fields.has("tool_choice"):
        use = _read_choice(fields, use)
    if (parallel := fields.boolean("parallel_tool_calls")) is not None:
        use = replace(use, parallel=parallel)
    if use.choice == "named" and all(tool.name != use.only for tool in use.tools):
        fields.refuse(
            "tool_choice", f"names the tool {use.only[:64]!r}, which is not among tools; add it, or use auto."
        )
    if use.forced and not use.tools:
        fields.refuse("tool_choice", f"{use.choice} needs tools, and there are none; send some, or leave it out.")
    return use


def _read_list(fields: Fields) -> tuple[Tool, ...]:
    tools = fields.each("tools")
    if len(tools) > MAX_TOOLS:
        fields.refuse("tools", f"may hold at most {MAX_TOOLS} tools, got {len(tools)}.")
    known: dict[str, Tool] = {}
    for asked in tools:
        function = _function(asked)
        tool = Tool(
            name=_name(function),
            description=function.string("description"),
            schema=None if (schema := function.child("parameters")) is None else dict(schema.values),
            strict=function.boolean("strict"),
        )
        if tool.name in known:
            function.refuse("name", f"{tool.name!r} is the name of another tool too; give each its own.")
        known[tool.name] = tool
    return tuple(known.values())


def _function(asked: Fields) -> Fields:
    """Where the function of a tool, or of a choice, is described."""
    kind = asked.string("type")
    if kind is None:
        asked.refuse("type", "is missing; use function.")
    if kind != "function":
        raise not_supported(asked.name("type"), f"A tool of type {kind[:40]!r}")
    return asked.child("function") or asked


def _name(function: Fields) -> str:
    name = function.string("name")
    if name is None:
        function.refuse("name", "is missing; a function needs its name.")
    if not _NAME.fullmatch(name):
        function.refuse("name", f"must be 1 to 64 letters, digits, _ or -, got {describe(name)}.")
    return name


def _read_choice(fields: Fields, use: ToolUse) -> ToolUse:
    value = fields.values["tool_choice"]
    if isinstance(value, str):
        if value not in _CHOICES:
            _refuse_choice(fields, value)
        return replace(use, choice=_CHOICES[value], only="")
    if not isinstance(value, dict):
        _refuse_choice(fields, value)
    asked = Fields(value, fields.name("tool_choice"))
    if asked.string("type") == "allowed_tools":
        return _read_allowed(asked.child("allowed_tools") or asked, use)
    return replace(use, choice="named", only=_name(_function(asked)))


def _refuse_choice(fields: Fields, value: object) -> NoReturn:
    fields.refuse(
        "tool_choice",
        f'must be {", ".join(_CHOICES)} or an object like {{"type": "function", …}}, got {describe(value)}.',
    )


def _read_allowed(asked: Fields, use: ToolUse) -> ToolUse:
    """A choice among some of the tools: the model is told of no others."""
    mode = asked.choice("mode", ("auto", "required")) or "auto"
    names = {_name(_function(tool)) for tool in asked.each("tools")}
    unknown = sorted(names - {tool.name for tool in use.tools})
    if unknown:
        raise RequestError(
            f"{asked.name('tools')} names the tool {unknown[0]!r}, which is not among tools; add it there.",
            param=asked.name("tools"),
        )
    tools = tuple(tool for tool in use.tools if tool.name in names)
    return replace(use, tools=tools, choice=_CHOICES[mode], only="")
