"""A sequence's guesses while a drafter makes them: it looks into a node, and learns what may follow there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .proposer import Ask, Proposal

Floats = NDArray[np.float32]


@dataclass(slots=True)
class GuessTree:
    """Node 0 is the pending token; every other node is a guess. Parents come before their children.

    ask: what it grows for. passed: node looked into -> what its children's pass reads of it, [W], None where a pass
    reads tokens alone. inside: the nodes looked into but for the pending token, in that order.
    """

    ask: Ask
    tokens: list[int] = field(default_factory=lambda: [-1])
    parents: list[int] = field(default_factory=lambda: [-1])
    depths: list[int] = field(default_factory=lambda: [0])
    estimates: list[float] = field(default_factory=lambda: [1.0])
    likely: list[float] = field(default_factory=lambda: [1.0])  # that the node and all above it are right
    passed: dict[int, Floats | None] = field(default_factory=dict)
    inside: list[int] = field(default_factory=list)

    def look_into(self, node: int, passed: Floats | None, tokens: NDArray[np.int64], estimates: Floats) -> None:
        """tokens, estimates: [k], what may follow the node, the best guess first."""
        self.passed[node] = passed
        if node:
            self.inside.append(node)
        guesses, chances, likely = tokens.tolist(), estimates.tolist(), self.likely[node]
        self.tokens += guesses
        self.parents += [node] * len(guesses)
        self.depths += [self.depths[node] + 1] * len(guesses)
        self.estimates += chances
        self.likely += [likely * estimate for estimate in chances]

    def descend(self, passed: Sequence[Floats | None] | Floats, tokens: NDArray[np.int64], estimates: Floats) -> None:
        """Look into the pending token, into the best guess below it, and so on: a level for each of passed [L].

        tokens, estimates: [L, k]
        """
        node = 0
        for each, guesses, chances in zip(passed, tokens, estimates, strict=True):
            first = len(self.tokens)
            self.look_into(node, each, guesses, chances)
            node = first

    def best(self, count: int, depth: int) -> list[int]:
        """Up to `count` guesses that were not looked into yet and stand above `depth`, the likeliest first."""
        room = min(count, self.ask.max_guesses - len(self.inside))
        if room <= 0:
            return []
        passed, depths = self.passed, self.depths
        outside = [node for node in range(1, len(depths)) if node not in passed and depths[node] < depth]
        outside.sort(key=self.likely.__getitem__, reverse=True)  # of equal ones the first stays first
        return outside[:room]

    def above(self, node: int) -> Floats:
        """[W], what was passed to the node's own pass."""
        passed = self.passed[self.parents[node]]
        if passed is None:
            raise ValueError("this drafter's passes read tokens alone")
        return passed

    def position(self, node: int) -> int:
        """Where the node's token stands in the text."""
        return len(self.ask.tokens) - 1 + self.depths[node]

    def proposal(self, source: str) -> Proposal:
        """The likeliest guesses; a parent is never less likely than its child, and comes before it."""
        order = sorted(range(1, len(self.tokens)), key=self.likely.__getitem__, reverse=True)[: self.ask.max_guesses]
        tokens, parents, estimates = self.tokens, self.parents, self.estimates
        place = {0: -1}
        for i, node in enumerate(order):
            place[node] = i
        return Proposal(
            source,
            tuple([tokens[node] for node in order]),
            tuple([place[parents[node]] for node in order]),
            tuple([estimates[node] for node in order]),
        )
