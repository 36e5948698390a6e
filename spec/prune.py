"""Guesses that may not come are taken out before they are verified: none of them costs a row."""

from __future__ import annotations

from .merge import NO_GUESSES, Guesses
from .proposer import Constraint


def prune(guesses: Guesses, constraint: Constraint | None) -> Guesses:
    """The guesses that fit, each with all above it; all of them where there is no constraint.

    What is taken out is as if it had never been guessed: nobody learns whether it was right, for the model was not
    asked. A drafter's estimate then is too low for what is left, which is learnt like any other error of it.
    """
    if constraint is None or not guesses.tokens:
        return guesses
    fitting = _fitting(guesses, constraint)
    if len(fitting) == len(guesses):
        return guesses
    if not fitting and not guesses.catching_up:
        return NO_GUESSES
    place = {-1: -1} | {guess: i for i, guess in enumerate(sorted(fitting))}
    kept = list(place)[1:]
    return Guesses(
        tuple([guesses.tokens[guess] for guess in kept]),
        tuple([place[guesses.parents[guess]] for guess in kept]),
        tuple([guesses.depths[guess] for guess in kept]),
        tuple([guesses.votes[guess] for guess in kept]),
        guesses.catching_up,
    )


def _fitting(guesses: Guesses, constraint: Constraint) -> set[int]:
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
    return fitting
