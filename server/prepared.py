"""What a reply needs before it can be submitted, and what takes time to make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from paceline.engine.grammar import Grammar

from .reply_parts import PartReader, PlainReader


@dataclass(frozen=True, slots=True)
class Prepared:
    """prompt: token ids, with the opening of the reply. reader: made anew for each choice. shown: special tokens whose
    names are text to that reader. stops: strings that end the reply besides the client's own."""

    prompt: tuple[int, ...]
    grammar: Grammar | None = None
    reader: Callable[[], PartReader] = PlainReader
    shown: frozenset[int] = frozenset()
    stops: tuple[str, ...] = ()
