"""The form a reply must have: the same for every protocol, however each spells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ReplyFormat:
    """source: a JSON schema (as JSON text), a regular expression or a grammar in Lark's notation; "" for the others."""

    kind: Literal["text", "json_object", "json_schema", "regex", "grammar"] = "text"
    source: str = ""


FREE_TEXT = ReplyFormat()
