"""Several proposals for one sequence, one trie: where drafters agree they share a node, and so a row of the step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .proposer import Proposal


class Vote(NamedTuple):
    """One drafter's word for a guess. rank: how many siblings the drafter named before it."""

    source: str
    rank: int
    estimate: float


@dataclass(frozen=True, slots=True)
class Guesses:
    """A trie of guesses below the pending token, parents before children; no two siblings carry the same token.

    tokens, parents, depths, votes: [m]; parents[i] is -1 right below the pending token, whose depth is 0. votes[i]
    holds one vote of each drafter that proposed guess i, in the order the proposals were given. catching_up: drafters
    that could not guess yet.
    """

    tokens: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    votes: tuple[tuple[Vote, ...], ...] = ()
    catching_up: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.tokens)


NO_GUESSES = Guesses()


def merge(proposals: Iterable[Proposal]) -> Guesses:
    """Equal paths become one. Where one proposal names a path twice, the first estimate counts."""
    tokens: list[int] = []
    parents: list[int] = []
    depths: list[int] = []
    votes: list[tuple[Vote, ...]] = []
    known: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    waiting: tuple[str, ...] = ()
    for source, words, above, probabilities, catching_up in proposals:
        if catching_up:
            waiting += (source,)
        nodes: list[int] = []
        ranks: dict[int, int] = {}
        for token, parent, estimate in zip(words, above, probabilities, strict=True):
            if parent >= 0:
                parent = nodes[parent]
            rank = ranks.get(parent, 0)
            place = parent, token
            node = known.get(place)
            if node is None:
                node = known[place] = len(tokens)
                tokens.append(token)
                parents.append(parent)
                depths.append(depths[parent] + 1 if parent >= 0 else 1)
                votes.append((Vote(source, rank, estimate),))
                ranks[parent] = rank + 1
            elif votes[node][-1].source != source:
                votes[node] += (Vote(source, rank, estimate),)
                ranks[parent] = rank + 1
            nodes.append(node)
    if not tokens and not waiting:
        return NO_GUESSES
    return Guesses(tuple(tokens), tuple(parents), tuple(depths), tuple(votes), waiting)
