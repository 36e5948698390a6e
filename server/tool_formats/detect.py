"""Which format a model writes its calls in, told once, when it is loaded."""

from __future__ import annotations

from ..text_decoder import Shown
from .described import Described
from .hermes import Hermes
from .llama import Llama
from .mistral import Mistral
from .tool_format import ToolFormat

# What a chat template that renders tools says of the format: the first that fits.
_SIGNS: tuple[tuple[tuple[str, ...], type[ToolFormat]], ...] = (
    (("[TOOL_CALLS]",), Mistral),
    (("<tool_call>", '"arguments"'), Hermes),
    (('"parameters"', '"name"'), Llama),
)


def tool_format_of(template: str, shown: Shown) -> ToolFormat:
    """The family's own format where the template renders tools in it, else the one that we describe."""
    if "tools" in template:
        plain = template.replace('\\"', '"')
        for signs, format_ in _SIGNS:
            if all(sign in plain for sign in signs):
                return format_(shown)
    return Described(shown)
