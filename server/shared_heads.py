"""Prompts that begin the same, turned into tokens together: most of a conversation is there again in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

from .tokenizer import Tokenizer

T = TypeVar("T", str, tuple[int, ...])

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
            texts = [text for text, _ in rendered]
            place = self._tokenizer.last_control(texts[0], common_length(texts))
        return [self._head(text[:place], guard) + self._encoded(text[place:], guard) for text, guard in rendered]

    def _encoded(self, text: str, guard: str | None) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode_rendered(text, guard=guard)) if text else ()


def common_length(sequences: Sequence[T]) -> int:
    """How much all of them begin with."""
    first, last = min(sequences), max(sequences)  # the two that part first
    pairs = enumerate(zip(first, last, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(first), len(last)))
