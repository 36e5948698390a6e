"""What a family's way of writing tool calls is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from ..fields import JsonObject
from ..text_decoder import Shown
from .telling import Chars, Telling


class ToolFormat(ABC):
    """One family's format. `mark` is the name of what opens its calls; a special token where the model has one."""

    mark: str
    bare = False  # a call may also begin a reply without the mark
    rendered = True  # the model's chat template renders tools

    def __init__(self, shown: Shown) -> None:
        self.marker = shown.spelling(self.mark)  # as readers see it

    @abstractmethod
    def read(self, tell: Telling, known: Collection[str] | None) -> Chars[None]:
        """Reads the call or calls behind the mark (or at the beginning, or behind another call, where `bare`), up to
        the last character that belongs to them.

        known: the only names there are, where there was no mark. Raises NotACallError; a call that was begun by then
        stays begun.
        """

    def call_id(self, digest: str) -> str:
        """The id of a call, made of a random-looking hexadecimal string."""
        return f"call_{digest[:24]}"

    def messages(self, messages: Sequence[JsonObject], tools: Sequence[JsonObject]) -> list[JsonObject]:
        """What the model's chat template is given; by default it renders calls, results and tools by itself."""
        return list(messages)
