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

_WEIGHTS = {2: 1.0, 3: 3.0, 4: 8.0}  # of a match of so many tokens: a longer one counts for more
_SHORTEST, _LONGEST = min(_WEIGHTS), max(_WEIGHTS)
_DOUBT = 1.5  # weight of "something else": one lone match of two tokens gives 1 / 2.5
_LOOKED_AT = 32  # earlier places whose match is measured, latest first
_PLACES = 8  # of these, the ones with the longest match are followed
_LENGTH = 16  # tokens taken from each


@dataclass
class _Index:
    """Where each pair of tokens was followed by something; `covered` tokens are indexed."""

    covered: int = _SHORTEST
    follows: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # pair -> positions after it, ascending

    def extend(self, tokens: Sequence[int]) -> None:
        for position in range(self.covered, len(tokens)):
            self.follows.setdefault((tokens[position - 2], tokens[position - 1]), []).append(position)
        self.covered = max(self.covered, len(tokens))

    def places(self, tokens: Sequence[int]) -> list[tuple[int, float]]:
        """Positions whose preceding tokens match the sequence's end, with their weights; the best matches first."""
        found = self.follows.get((tokens[-2], tokens[-1]), ()) if len(tokens) >= _SHORTEST else ()
        matches = [(_match(tokens, position), position) for position in found[-_LOOKED_AT:]]
        return [(position, _WEIGHTS[size]) for size, position in sorted(matches, reverse=True)[:_PLACES]]


def _match(tokens: Sequence[int], position: int) -> int:
    """How many tokens before `position` equal the last ones, at least the pair that is known to, at most _LONGEST."""
    size = _SHORTEST
    while size < min(_LONGEST, position) and tokens[position - size - 1] == tokens[-size - 1]:
        size += 1
    return size


def _continuation(tokens: Sequence[int], position: int) -> list[int]:
    """What followed there; where the text ends it is expected to go round again."""
    following = list(tokens[position : position + _LENGTH])
    return [following[i % len(following)] for i in range(_LENGTH)]


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

    def cost_ms(self, asks: Sequence[Ask]) -> float:
        return 0.0

    def propose(self, asks: Sequence[Ask]) -> list[Proposal]:
        return [self._propose_one(ask) for ask in asks]

    def _propose_one(self, ask: Ask) -> Proposal:
        index = self._indexes.setdefault(ask.seq_id, _Index())
        index.extend(ask.tokens)
        trie = _Trie()
        for position, weight in index.places(ask.tokens):
            trie.add(_continuation(ask.tokens, position), weight)
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
