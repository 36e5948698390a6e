"""Guesses that may not come are taken out before they are verified: none of them costs a row."""

from __future__ import annotations

from collections.abc import Sequence, Set

from .merge import NO_GUESSES, Guesses
from .proposer import Constraint


def prune(guesses: Guesses, constraint: Constraint | None, ends: Set[int] = frozenset()) -> Guesses:
    """The guesses that may come, each with all above it: none that the constraint rules out, and none below one of the
    tokens in `ends`, which end the reply.

    What is taken out is as if it had never been guessed: nobody learns whether it was right, for the model was not
    asked. A drafter's estimate then is too low for what is left, which is learnt like any other error of it.
    """
    if not ends.isdisjoint(guesses.tokens):
        guesses = _only(guesses, _before_the_end(guesses, ends))
    return guesses if constraint is None else _only(guesses, _fitting(guesses, constraint))


def _only(guesses: Guesses, kept: Sequence[int]) -> Guesses:
    """kept: in their order, each with all above it."""
    if len(kept) == len(guesses):
        return guesses
    if not kept and not guesses.catching_up:
        return NO_GUESSES
    place = {-1: -1} | {guess: i for i, guess in enumerate(kept)}
    return Guesses(
        tuple([guesses.tokens[guess] for guess in kept]),
        tuple([place[guesses.parents[guess]] for guess in kept]),
        tuple([guesses.depths[guess] for guess in kept]),
        tuple([guesses.votes[guess] for guess in kept]),
        guesses.catching_up,
    )


def _before_the_end(guesses: Guesses, ends: Set[int]) -> list[int]:
    kept: list[int] = []
    open_ = {-1}  # what more may come after
    for guess, (token, parent) in enumerate(zip(guesses.tokens, guesses.parents, strict=True)):
        if parent in open_:
            kept.append(guess)
            if token not in ends:
                open_.add(guess)
    return kept


def _fitting(guesses: Guesses, constraint: Constraint) -> list[int]:
    """Each path from the top to a leaf is asked about once."""
    parents = set(guesses.parents)
    fitting: set[int] = set()
    for leaf in range(len(guesses)):
        if leaf not in parents:
            path = [leaf]
            while (above := guesses.parents[path[-1]]) >= 0:
                path.append(above)
            path.reverse()
            fitting.update(path[: constraint.fits([guesses.tokens[guess] for guess in path])])
    return sorted(fitting)
