"""Prompts that begin the same, turned into tokens together: most of a conversation is there again in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from os.path import commonprefix

from .tokenizer import Tokenizer

_KEPT = 16  # beginnings, of the conversations whose users write now


class SharedHeads:
    """What all prompts begin with, up to a control token, is encoded once, and not again while it stays the same: of a
    text that grows only its turn is. Used from one thread."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._head = lru_cache(_KEPT)(self._encoded)

    def encode(self, rendered: Sequence[tuple[str, str | None]]) -> list[tuple[int, ...]]:
        """As `Tokenizer.encode_rendered` of each text with its guard."""
        guards = {guard for _, guard in rendered}
        place = 0
        if len(guards) == 1:
            first = rendered[0][0]
            place = self._tokenizer.last_control(first, len(commonprefix([text for text, _ in rendered])))
        return [self._head(text[:place], guard) + self._encoded(text[place:], guard) for text, guard in rendered]

    def _encoded(self, text: str, guard: str | None) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode_rendered(text, guard=guard)) if text else ()
