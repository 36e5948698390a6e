"""The tools a reply may call: the same for every protocol, however each spells them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .fields import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function the client offers. schema: the JSON schema of its arguments, None for anything."""

    name: str
    description: str | None = None
    schema: JsonObject | None = None
    strict: bool = False  # arguments must fit the schema, whatever the model would write

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
    choice: Literal["auto", "none", "required", "named"] = "auto"
    only: str = ""  # the tool's name, with "named"
    parallel: bool = True  # more than one call in one reply


NO_TOOLS = ToolUse()
