"""How many guesses now: choose the nodes that make the most tokens per millisecond; none is an ordinary answer."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from .cost import CostCurve
from .proposer import Proposal
from .stats import Acceptance
from .tree import TokenTree


@dataclass(frozen=True, slots=True)
class Draft:
    """A tree ready to be verified, and who guessed what with which confidence.

    guesses: [n - 1] (source, depth, estimate) of node i + 1, for learning from the verdict.
    """

    tree: TokenTree
    guesses: tuple[tuple[str, int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class _Choice:
    """One guess of one sequence as the planner sees it."""

    sequence: int
    guess: int
    likelihood: float  # that it and all its ancestors are right


class Planner:
    """Sizes the trees of a step together, since they share its cost."""

    def __init__(self, cost: CostCurve, acceptance: Acceptance | None = None) -> None:
        self._cost = cost
        self._acceptance = acceptance or Acceptance()

    def drafts(
        self, roots: Sequence[int], proposals: Sequence[Proposal], budgets: Sequence[int], rows: int
    ) -> list[Draft]:
        """Trees that maximise (sequences + accepted guesses) / cost(rows).

        roots: pending token of each decoding sequence. budgets: most guesses of each, 0 … 63. rows: what the step
        computes anyway, the roots included.
        """
        depths = [_depths(proposal) for proposal in proposals]
        ranked = self._ranked(proposals, depths, budgets)
        count = self._best_count([choice.likelihood for choice in ranked], len(roots), rows)
        chosen: list[list[int]] = [[] for _ in roots]
        for choice in ranked[:count]:
            chosen[choice.sequence].append(choice.guess)
        return [_draft(*parts) for parts in zip(roots, proposals, depths, chosen, strict=True)]

    def _ranked(
        self, proposals: Sequence[Proposal], depths: Sequence[Sequence[int]], budgets: Sequence[int]
    ) -> list[_Choice]:
        """All guesses within their sequence's budget, likeliest first, parents before children."""
        everything: list[list[_Choice]] = []
        for sequence, (proposal, depth, budget) in enumerate(zip(proposals, depths, budgets, strict=True)):
            likely: list[float] = []
            for guess, (parent, estimate) in enumerate(zip(proposal.parents, proposal.probabilities, strict=True)):
                p = self._acceptance.probability(proposal.source, depth[guess], estimate)
                likely.append(p if parent < 0 else p * likely[parent])
            choices = [_Choice(sequence, guess, value) for guess, value in enumerate(likely)]
            # A child is never likelier than its parent and the sort is stable, so parents stay first.
            choices.sort(key=lambda choice: -choice.likelihood)
            everything.append(choices[:budget])
        return list(heapq.merge(*everything, key=lambda choice: -choice.likelihood))

    def _best_count(self, likelihoods: Sequence[float], sequences: int, rows: int) -> int:
        """How many of the guesses, likeliest first, give the highest rate; looking past bumps of the cost curve."""
        tokens = float(sequences)
        best, best_rate = 0, tokens / self._cost.cost(rows) if rows else 0.0
        for count, likelihood in enumerate(likelihoods, start=1):
            tokens += likelihood
            rate = tokens / self._cost.cost(rows + count)
            if rate > best_rate:
                best, best_rate = count, rate
        return best

    def observe_step(self, rows: int, ms: float) -> None:
        """A step with this many rows took so long."""
        self._cost.correct(rows, ms)

    def observe(self, draft: Draft, path: Sequence[int]) -> None:
        """Learn from a verdict: every guess whose parent was accepted was put to the test."""
        accepted = set(path)
        for node, (source, depth, estimate) in enumerate(draft.guesses, start=1):
            if draft.tree.parents[node] in accepted:
                self._acceptance.observe(source, depth, estimate, node in accepted)


def _depths(proposal: Proposal) -> list[int]:
    depths: list[int] = []
    for parent in proposal.parents:
        depths.append(1 if parent < 0 else depths[parent] + 1)
    return depths


def _draft(root: int, proposal: Proposal, depths: Sequence[int], picks: Sequence[int]) -> Draft:
    """Lay the picks, given likeliest first, out depth first: the likeliest path then needs no moving."""
    children: dict[int, list[int]] = {}
    for guess in picks:
        children.setdefault(proposal.parents[guess], []).append(guess)
    tokens, parents, guesses = [root], [-1], []
    node_of = {-1: 0}
    stack = children.get(-1, [])[::-1]  # picks come likeliest first, and a stack gives the last one first
    while stack:
        guess = stack.pop()
        node_of[guess] = len(tokens)
        tokens.append(proposal.tokens[guess])
        parents.append(node_of[proposal.parents[guess]])
        guesses.append((proposal.source, depths[guess], proposal.probabilities[guess]))
        stack += children.get(guess, [])[::-1]
    return Draft(TokenTree(tuple(tokens), tuple(parents)), tuple(guesses))
