"""The n-gram drafter: what followed the last tokens when they stood here before (prompt lookup, Saxena 2023).

Several earlier places usually continue differently; their continuations are merged into one trie, so a step verifies
all of them at once.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

from .proposer import Ask, Proposal, Verdict

_SIZES = (4, 3, 2)  # longest first
_WEIGHTS = {4: 8.0, 3: 3.0, 2: 1.0}  # a longer match counts for more
_DOUBT = 1.5  # weight of "something else": one lone 2-gram match gives 1 / 2.5
_PLACES = 8  # earlier places looked at, latest first
_LENGTH = 16  # tokens taken from each


@dataclass
class _Index:
    """Where each n-gram of a sequence was followed by something. `covered` tokens are indexed."""

    covered: int = 0
    follows: dict[tuple[int, ...], list[int]] = field(default_factory=dict)  # n-gram -> positions after it, ascending

    def extend(self, tokens: Sequence[int]) -> None:
        for position in range(max(self.covered, 1), len(tokens)):
            for size in _SIZES:
                if position >= size:
                    self.follows.setdefault(tuple(tokens[position - size : position]), []).append(position)
        self.covered = len(tokens)

    def places(self, tokens: Sequence[int]) -> dict[int, float]:
        """Positions whose preceding tokens match the sequence's end, with the weight of the longest match."""
        found: dict[int, float] = {}
        for size in _SIZES:
            for position in reversed(self.follows.get(tuple(tokens[-size:]), ())):
                if len(found) == _PLACES:
                    return found
                found.setdefault(position, _WEIGHTS[size])
        return found


@dataclass
class _Trie:
    weight: float = 0.0
    children: dict[int, _Trie] = field(default_factory=dict)

    def add(self, tokens: Sequence[int], weight: float) -> None:
        node = self
        node.weight += weight
        for token in tokens:
            node = node.children.setdefault(token, _Trie())
            node.weight += weight


class NGram:
    """Looks the last two to four tokens up in the sequence's own prompt and output."""

    name = "ngram"
    needs_hidden = False

    def __init__(self) -> None:
        self._indexes: dict[str, _Index] = {}

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        return [self._propose_one(ask) for ask in asks]

    def _propose_one(self, ask: Ask) -> Proposal:
        index = self._indexes.setdefault(ask.seq_id, _Index())
        index.extend(ask.tokens)
        trie = _Trie()
        for position, weight in index.places(ask.tokens).items():
            trie.add(ask.tokens[position : position + _LENGTH], weight)
        return self._likeliest(trie, ask.max_guesses)

    def _likeliest(self, trie: _Trie, most: int) -> Proposal:
        """The `most` likeliest nodes of the trie, best first."""
        tokens: list[int] = []
        parents: list[int] = []
        probabilities: list[float] = []
        arrival = itertools.count()
        # Entries: (-likelihood, order of arrival, parent guess, token, estimate, node)
        heap: list[tuple[float, int, int, int, float, _Trie]] = []

        def push(node: _Trie, guess: int, likelihood: float) -> None:
            for token, child in node.children.items():
                estimate = child.weight / (node.weight + _DOUBT)
                heapq.heappush(heap, (-likelihood * estimate, next(arrival), guess, token, estimate, child))

        push(trie, -1, 1.0)
        while heap and len(tokens) < most:
            negative, _, parent, token, estimate, node = heapq.heappop(heap)
            tokens.append(token)
            parents.append(parent)
            probabilities.append(estimate)
            push(node, len(tokens) - 1, -negative)
        return Proposal(self.name, tuple(tokens), tuple(parents), tuple(probabilities))

    def observe(self, verdicts: Sequence[Verdict]) -> None:
        pass  # the next ask carries the tokens

    def forget(self, seq_id: str) -> None:
        self._indexes.pop(seq_id, None)
