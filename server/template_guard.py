"""Keeping what people type from becoming control tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.engine.errors import RequestError


class TemplateGuard:
    """Breaks up the names of special tokens in strings that people wrote, with a character that is in none of them."""

    def __init__(self, specials: Iterable[str]) -> None:
        names = sorted(name for name in specials if len(name) > 1)  # there is nothing to break in one character
        self._begins = {name[:size] for name in names for size in range(1, len(name))}
        self._longest = max(map(len, names), default=0)
        by_first: dict[str, list[str]] = {}
        for name in names:
            by_first.setdefault(name[0], []).append(name[1:])
        alternatives = "|".join(f"{re.escape(first)}(?={_rest(tails)})" for first, tails in by_first.items())
        self._name = re.compile(alternatives or r"(?!)")

    def guard_for(self, value: Any) -> str | None:
        """A character to break up names with, or None if no string in `value` needs it."""
        texts = list(strings(value))
        if not any(self._places(text) for text in texts):
            return None
        used = set().union(*texts)
        # Noncharacters first: they are for internal use; then the private planes, more than any message can hold.
        candidates = (*range(0xFDD0, 0xFDF0), *range(0xF0000, 0xFFFFE), *range(0x100000, 0x10FFFE))
        guard = next((chr(code) for code in candidates if chr(code) not in used), None)
        if guard is None:
            raise RequestError("The messages use every private character of Unicode; send text.", param="messages")
        return guard

    def plain(self, value: Any, guard: str | None) -> Any:
        """A copy made of plain JSON types alone, with `guard` put into the names of special tokens."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return value if guard is None else self._break(value, guard)
        if isinstance(value, Mapping):
            return {self.plain(key, guard): self.plain(item, guard) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.plain(item, guard) for item in value]
        raise TypeError(f"a value of type {type(value).__name__} is not JSON")

    def _break(self, text: str, guard: str) -> str:
        pieces: list[str] = []
        start = 0
        for place in self._places(text):
            pieces += (text[start:place], guard)
            start = place
        return "".join([*pieces, text[start:]])

    def _places(self, text: str) -> list[int]:
        """Where to break: after the first character of each name, and of each beginning of a name that ends the text.

        The latter because a template may trim the text and put more after it.
        """
        end = text.rstrip()
        sizes = range(1, min(self._longest, len(end) + 1))
        open_ends = {len(end) - size + 1 for size in sizes if end[-size:] in self._begins}
        return sorted(open_ends.union(match.end() for match in self._name.finditer(text)))


def _rest(tails: list[str]) -> str:
    """A pattern for any of `tails`, as a tree: each character of a text is tried once, however many names there are."""
    if "" in tails:
        return ""
    by_first: dict[str, list[str]] = {}
    for tail in tails:
        by_first.setdefault(tail[0], []).append(tail[1:])
    branches = [re.escape(first) + _rest(rest) for first, rest in by_first.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, names of fields included."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
