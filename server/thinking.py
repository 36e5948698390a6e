"""Models that think before they answer: the tags around their thoughts, and what a client may ask of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .fields import Fields
from .text_decoder import Shown

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")

_TAGS = (("<think>", "</think>"), ("[THINK]", "[/THINK]"))  # Qwen 3 and DeepSeek; Magistral


@dataclass(frozen=True, slots=True)
class Tags:
    """As readers see them. name: the opening tag as prompts spell it."""

    open: str
    close: str
    name: str


def tags_of(template: str, shown: Shown) -> Tags | None:
    """The tags a model's chat template knows; None for a model that does not think."""
    for opening, closing in _TAGS:
        if closing in template:
            return Tags(shown.spelling(opening), shown.spelling(closing), opening)
    return None


@dataclass(frozen=True, slots=True)
class Thinking:
    """enabled: whether the model is to think, None for the template's own default. effort: how much, None likewise."""

    enabled: bool | None = None
    effort: str | None = None

    def variables(self) -> dict[str, Any]:
        """For the chat template; templates know the switch under one name or the other."""
        out: dict[str, Any] = {}
        if self.enabled is not None:
            out |= {"enable_thinking": self.enabled, "thinking": self.enabled}
        if self.effort is not None:
            out["reasoning_effort"] = self.effort
        return out


MODELS_OWN = Thinking()


def read_thinking(fields: Fields, base: Thinking) -> Thinking:
    """`base` with what `reasoning_effort`, `reasoning.effort` (Responses) or `chat_template_kwargs` change.

    Raises RequestError.
    """
    asked = fields.child("reasoning")
    effort = fields.choice("reasoning_effort", EFFORTS) or (asked.choice("effort", EFFORTS) if asked else None)
    if effort is not None:
        base = Thinking(enabled=effort != "none", effort=None if effort == "none" else effort)
    variables = fields.child("chat_template_kwargs")
    if variables is not None:
        for name in ("enable_thinking", "thinking"):
            if (enabled := variables.boolean(name)) is not None:
                base = replace(base, enabled=enabled)
    return base
