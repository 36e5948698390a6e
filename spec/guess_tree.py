"""A sequence's guesses while a drafter makes them: it looks into a node, and learns what may follow there."""

from __future__ import annotations

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
        for token, estimate in zip(tokens.tolist(), estimates.tolist(), strict=True):
            self.tokens.append(token)
            self.parents.append(node)
            self.depths.append(self.depths[node] + 1)
            self.estimates.append(estimate)
            self.likely.append(self.likely[node] * estimate)

    def best(self, count: int, depth: int) -> list[int]:
        """Up to `count` guesses that were not looked into yet and stand above `depth`, the likeliest first."""
        outside = [node for node in range(1, len(self.tokens)) if node not in self.passed and self.depths[node] < depth]
        room = min(count, self.ask.max_guesses - len(self.inside))
        return sorted(outside, key=lambda node: -self.likely[node])[: max(room, 0)]

    def position(self, node: int) -> int:
        """Where the node's token stands in the text."""
        return len(self.ask.tokens) - 1 + self.depths[node]

    def proposal(self, source: str) -> Proposal:
        """The likeliest guesses; a parent is never less likely than its child, and comes before it."""
        order = sorted(range(1, len(self.tokens)), key=lambda node: -self.likely[node])[: self.ask.max_guesses]
        place = {node: i for i, node in enumerate(order)} | {0: -1}
        return Proposal(
            source,
            tuple(self.tokens[node] for node in order),
            tuple(place[self.parents[node]] for node in order),
            tuple(self.estimates[node] for node in order),
        )
