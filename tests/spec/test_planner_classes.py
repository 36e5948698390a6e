"""Guesses of several classes in one step: the higher choose first, the lower within what those bear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.spec.cost import StepCost, Work
from paceline.spec.latency import Step, bearable
from paceline.spec.merge import merge
from paceline.spec.planner import Planner
from paceline.spec.proposer import Ask, Proposal

FLAT = {1000: 1.0}
PROBABILITIES = st.floats(0.01, 0.99)


def chain(*probabilities: float) -> Proposal:
    count = len(probabilities)
    return Proposal("draft", tuple(range(count)), tuple(range(-1, count - 1)), probabilities)


def streams_of(ranks: Sequence[int]) -> dict[int, Work]:
    """One decoding row each."""
    return {rank: Work(sum(other <= rank for other in ranks)) for rank in sorted(set(ranks))}


def counts(
    points: Mapping[int, float],
    asked: Sequence[tuple[int, Proposal]],
    silent: Sequence[int] = (),
    chunk: int = 0,
) -> list[int]:
    """Guesses of each sequence, given its class and what was proposed. silent: classes of sequences that decode beside
    them and guess nothing."""
    ranks = [rank for rank, _ in asked]
    step = Step(Work(len(ranks) + len(silent) + chunk), streams_of([*ranks, *silent]))
    asks = [Ask(f"s{i}", [100 + i], 1, 63, rank=rank) for i, rank in enumerate(ranks)]
    planned = Planner(StepCost(points)).drafts(asks, [merge([proposal]) for _, proposal in asked], step)
    return [len(draft.picks) for draft in planned]


def test_lower_classes_get_what_the_higher_ones_leave() -> None:
    stairs = {1: 3.0, 6: 3.0, 7: 100.0}
    long, short = chain(0.9, 0.9, 0.9), chain(0.2, 0.5)
    assert counts(stairs, [(0, long), (1, short), (2, short)]) == [3, 0, 0]
    assert counts(stairs, [(2, long), (1, short), (0, short)]) == [0, 1, 2]
    assert counts(stairs, [(1, long), (1, short), (1, short)]) == [3, 0, 0]


def test_lower_classes_make_a_step_no_longer_than_the_higher_ones_bear() -> None:
    """Each row adds a tenth of a plain step of the first, and every guess is right."""
    line = {rows: 0.92 + 0.1 * rows for rows in range(1, 101)}
    sure = chain(*[0.99] * 20)
    assert counts(line, [(1, sure)]) == [20]
    assert counts(line, [(1, sure), (1, sure)]) == [20, 20]
    assert counts(line, [(1, sure)], silent=[0]) == [4]  # 1.12 with its root, 1.53 at most
    assert counts(line, [(2, sure)], silent=[0]) == [1]
    assert counts(line, [(2, sure)], silent=[1]) == [4]
    assert counts(line, [(0, sure)], silent=[1]) == [20]
    assert counts(line, [(0, sure), (1, sure)]) == [20, 14]  # 3.02 by the first one's own will: 4.53


def test_what_a_chunk_has_taken_is_not_there_for_guesses() -> None:
    line = {rows: 0.92 + 0.1 * rows for rows in range(1, 101)}
    sure = chain(*[0.99] * 20)
    assert counts(line, [(1, sure)], silent=[0], chunk=3) == [1]
    assert counts(line, [(1, sure)], silent=[0], chunk=8) == [0]
    assert counts(line, [(1, sure)], chunk=8) == [20]


@settings(max_examples=60)
@given(
    st.dictionaries(st.integers(1, 30), st.floats(0.5, 5), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 2), st.lists(PROBABILITIES, max_size=8)), min_size=1, max_size=4),
)
def test_the_step_stays_within_what_each_class_bears(
    points: dict[int, float], asked: list[tuple[int, list[float]]]
) -> None:
    cost, ranks = StepCost(points), [rank for rank, _ in asked]
    found = counts(points, [(rank, chain(*estimates)) for rank, estimates in asked])
    own: dict[int, float] = {}
    for rank in sorted(set(ranks)):
        guesses = sum(count for count, each in zip(found, ranks, strict=True) if each == rank)
        rows = len(ranks) + sum(count for count, each in zip(found, ranks, strict=True) if each <= rank)
        assert guesses == 0 or cost.ms(Work(rows)) <= bearable(own, rank) * (1 + 1e-9)
        added = cost.ms(Work(rows)) - cost.ms(Work(len(ranks)))
        own[rank] = cost.ms(streams_of(ranks)[rank]) + added


@given(st.lists(st.lists(PROBABILITIES, max_size=8), min_size=1, max_size=3), st.integers(0, 2))
def test_alone_every_class_guesses_alike(asked: list[list[float]], rank: int) -> None:
    points = {1: 1.0, 4: 1.2, 30: 9.0}
    found = [counts(points, [(each, chain(*estimates)) for estimates in asked]) for each in (0, rank)]
    assert found[0] == found[1]
