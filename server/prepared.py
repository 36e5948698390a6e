"""What a reply needs before it can be submitted, and what takes time to make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from paceline.engine.grammar import Grammar

from .reply_parts import PartReader, PlainReader


def plain_reader(seed: int) -> PartReader:
    """Of a reply in which nothing but words is looked for."""
    return PlainReader()


@dataclass(frozen=True, slots=True)
class Prepared:
    """prompt: token ids, with the opening of the reply. reader: makes the reader of a choice from the choice's seed.
    shown: special tokens that reader is to see, by id, and the character each is seen as (`text_decoder.Shown`)."""

    prompt: tuple[int, ...]
    grammar: Grammar | None = None
    reader: Callable[[int], PartReader] = plain_reader
    shown: Mapping[int, str] = field(default_factory=dict)
