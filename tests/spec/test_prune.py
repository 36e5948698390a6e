from __future__ import annotations

from collections.abc import Sequence

from paceline.spec.merge import NO_GUESSES, Guesses, merge
from paceline.spec.proposer import Proposal
from paceline.spec.prune import prune


class Ascending:
    """Allows tokens each larger than the one before, the first larger than `low`; keeps what it was asked."""

    def __init__(self, low: int) -> None:
        self.low = low
        self.asked: list[list[int]] = []

    def fits(self, tokens: Sequence[int]) -> int:
        self.asked.append(list(tokens))
        before = [self.low, *tokens]
        return next((i for i, (a, b) in enumerate(zip(before, tokens, strict=False)) if b <= a), len(tokens))

    def forced(self) -> Sequence[int]:
        return ()


#  guess     0  1  2  3   4  5  6
TOKENS = (5, 7, 6, 3, 9, 2, 8)
PARENTS = (-1, 0, 1, 0, 1, -1, 5)
TREE = merge([Proposal("a", TOKENS, PARENTS, (0.5,) * 7), Proposal("b", (5, 3), (-1, 0), (0.9, 0.8), catching_up=True)])


def test_what_does_not_fit_goes_with_all_below_it() -> None:
    constraint = Ascending(4)
    kept = prune(TREE, constraint)
    assert kept == Guesses((5, 7, 9), (-1, 0, 1), (1, 2, 3), (TREE.votes[0], TREE.votes[1], TREE.votes[4]), ("b",))
    assert sorted(constraint.asked) == [[2, 8], [5, 3], [5, 7, 6], [5, 7, 9]], "each leaf is asked about once"


def test_guesses_that_all_fit_or_have_nothing_to_keep_to_are_left_alone() -> None:
    chain = merge([Proposal("a", (5, 6, 7), (-1, 0, 1), (0.5,) * 3)])
    assert prune(chain, Ascending(0)) is chain
    assert prune(TREE, None) is TREE
    assert prune(NO_GUESSES, Ascending(0)) is NO_GUESSES


def test_when_nothing_fits_only_who_is_catching_up_is_left() -> None:
    assert prune(TREE, Ascending(100)) == Guesses(catching_up=("b",))
    assert prune(merge([Proposal("a", (5,), (-1,), (0.5,))]), Ascending(100)) is NO_GUESSES


def test_nothing_is_guessed_behind_the_end_of_a_reply() -> None:
    kept = prune(TREE, None, {7, 8})
    assert kept == Guesses(
        (5, 7, 3, 2, 8), (-1, 0, 0, -1, 3), (1, 2, 2, 1, 2), tuple(TREE.votes[i] for i in (0, 1, 3, 5, 6)), ("b",)
    )
    assert prune(TREE, None, {6, 100}) is TREE
    constraint = Ascending(4)
    assert prune(TREE, constraint, {7}) == Guesses((5, 7), (-1, 0), (1, 2), TREE.votes[:2], ("b",))
    assert sorted(constraint.asked) == [[2, 8], [5, 3], [5, 7]]
