from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paceline.spec.merge import NO_GUESSES, Guesses, Vote, merge
from paceline.spec.proposer import Proposal


@st.composite
def proposal(draw: st.DrawFn, source: str) -> Proposal:
    """Few tokens, so that paths meet, within a proposal too."""
    count = draw(st.integers(0, 12))
    return Proposal(
        source,
        tuple(draw(st.integers(0, 2)) for _ in range(count)),
        tuple(draw(st.integers(-1, guess - 1)) for guess in range(count)),
        tuple(draw(st.floats(0.1, 1.0)) for _ in range(count)),
    )


def paths(forest: Proposal | Guesses) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for token, parent in zip(forest.tokens, forest.parents, strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return found


def first_estimates(one: Proposal) -> dict[tuple[int, ...], float]:
    found: dict[tuple[int, ...], float] = {}
    for path, estimate in zip(paths(one), one.probabilities, strict=True):
        found.setdefault(path, estimate)
    return found


@given(st.tuples(proposal("a"), proposal("b"), proposal("c")))
def test_every_path_is_there_once_with_the_word_of_all_who_named_it(given_: tuple[Proposal, ...]) -> None:
    merged = merge(given_)
    found = paths(merged)
    estimates = [first_estimates(each) for each in given_]
    assert len(set(found)) == len(found)
    assert set(found) == {path for each in estimates for path in each}
    for parent, guess in zip(merged.parents, range(len(merged)), strict=True):
        assert -1 <= parent < guess
    for path, depth, votes in zip(found, merged.depths, merged.votes, strict=True):
        assert depth == len(path)
        expected = [(p.source, each[path]) for p, each in zip(given_, estimates, strict=True) if path in each]
        assert [(vote.source, vote.estimate) for vote in votes] == expected


def test_ranks_count_the_siblings_a_drafter_named_before() -> None:
    first = Proposal("a", (5, 6, 7), (-1, -1, 0), (0.5, 0.3, 0.9))
    second = Proposal("b", (6, 5, 8), (-1, -1, -1), (0.6, 0.2, 0.1))
    merged = merge([first, second])
    assert merged.tokens == (5, 6, 7, 8)
    assert merged.votes == (
        (Vote("a", 0, 0.5), Vote("b", 1, 0.2)),
        (Vote("a", 1, 0.3), Vote("b", 0, 0.6)),
        (Vote("a", 0, 0.9),),
        (Vote("b", 2, 0.1),),
    )


def test_nothing_merged_is_nothing() -> None:
    assert merge([]) == merge([Proposal("a"), Proposal("b")]) == NO_GUESSES
    assert len(NO_GUESSES) == 0
