"""What the engine asks of a grammar that a reply must follow. Whoever makes the request brings it: the engine never
sees text, so it knows tokens that may come next and nothing of why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Matcher(Protocol):
    """Where one reply stands in its grammar. Used by one thread at a time. What it says depends on the tokens that have
    come, and on nothing that was asked before.

    It never goes back: the walk keeps every token it chooses, and guesses are judged without moving it.
    """

    def mask(self) -> NDArray[np.uint32]:
        """[ceil(V / 32)]: bit v % 32 of word v // 32 is set where token v may come next; never all zero. Ids that end a
        reply are set where the grammar may end. Raises GrammarError where it cannot be told what may come."""

    def fits(self, tokens: Sequence[int]) -> int:
        """How many of `tokens`, from the first on, may come next, one after the other. Cheaper than a mask: the token
        behind it surely may not, but what fits may yet be refused by a mask. Ids that end a reply need not fit."""

    def advance(self, tokens: Sequence[int]) -> None:
        """`tokens` have come. Raises GrammarError for one that may not."""

    def forced(self) -> Sequence[int]:
        """Tokens that must come next, one after the other; empty where there is a choice, or the reply must end."""


class Grammar(Protocol):
    """Immutable, and shared by all replies that follow it. Its matchers belong to one thread, the engine's."""

    def matcher(self) -> Matcher:
        """A matcher at the start of a reply."""
