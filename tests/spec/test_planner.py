from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.spec.cost import CostCurve
from paceline.spec.planner import Draft, Planner
from paceline.spec.proposer import Proposal
from paceline.spec.stats import Acceptance
from paceline.spec.tree import MAX_NODES

FLAT = CostCurve({1000: 1.0})  # any step costs the same
PROPORTIONAL = CostCurve({1: 1.0})
PROBABILITIES = st.floats(0.01, 1.0)


@st.composite
def proposals(draw: st.DrawFn, most: int) -> Proposal:
    """Token i for guess i, so that a tree's tokens say which guesses it holds."""
    count = draw(st.integers(0, most))
    return Proposal(
        "ngram",
        tuple(range(count)),
        tuple(draw(st.integers(-1, guess - 1)) for guess in range(count)),
        tuple(draw(PROBABILITIES) for _ in range(count)),
    )


def likelihoods(proposal: Proposal) -> list[float]:
    found: list[float] = []
    for parent, p in zip(proposal.parents, proposal.probabilities, strict=True):
        found.append(p if parent < 0 else p * found[parent])
    return found


def subtrees(proposal: Proposal, budget: int) -> Iterator[tuple[int, ...]]:
    """Every set of guesses within the budget that holds each guess's parent too."""
    for bits in product((False, True), repeat=len(proposal.tokens)):
        picks = tuple(guess for guess, bit in enumerate(bits) if bit)
        if len(picks) <= budget and all(proposal.parents[guess] in (-1, *picks) for guess in picks):
            yield picks


def guesses_in(draft: Draft) -> list[int]:
    return list(draft.tree.tokens[1:])


def rate(cost: CostCurve, rows: int, given: Sequence[Proposal], picks: Sequence[Sequence[int]]) -> float:
    tokens = len(given) + sum(likelihoods(p)[guess] for p, chosen in zip(given, picks, strict=True) for guess in chosen)
    return tokens / cost.cost(rows + sum(map(len, picks)))


@settings(max_examples=80)
@given(
    st.lists(st.tuples(proposals(most=5), st.integers(0, 6)), min_size=1, max_size=2),
    st.dictionaries(st.integers(1, 14), st.floats(0.5, 5), min_size=1, max_size=5),
    st.integers(0, 5),
)
def test_rate_is_the_best_of_all_choices(
    asked: list[tuple[Proposal, int]], points: dict[int, float], prefill: int
) -> None:
    """Curves of any shape, so that a dear guess may be followed by cheap ones."""
    cost, given_ = CostCurve(points), [proposal for proposal, _ in asked]
    rows = len(asked) + prefill
    drafts = Planner(cost).drafts([100, 200][: len(asked)], given_, [budget for _, budget in asked], rows)
    best = max(rate(cost, rows, given_, picks) for picks in product(*(subtrees(p, budget) for p, budget in asked)))
    assert rate(cost, rows, given_, [guesses_in(draft) for draft in drafts]) >= best * (1 - 1e-9)


@given(st.lists(st.tuples(proposals(most=30), st.integers(0, MAX_NODES - 1)), max_size=4))
def test_drafts_are_subtrees_of_what_was_proposed(asked: list[tuple[Proposal, int]]) -> None:
    roots = [1000 + i for i in range(len(asked))]
    drafts = Planner(FLAT).drafts(roots, [p for p, _ in asked], [budget for _, budget in asked], rows=len(asked))
    assert [draft.tree.tokens[0] for draft in drafts] == roots
    for draft, (proposal, budget) in zip(drafts, asked, strict=True):
        picks = guesses_in(draft)
        assert len(picks) == len(set(picks)) == min(budget, len(proposal.tokens))  # a flat curve takes all it may
        assert len(draft.guesses) == len(picks)
        for node, (guess, (source, depth, estimate)) in enumerate(zip(picks, draft.guesses, strict=True), start=1):
            parent = draft.tree.parents[node]
            assert proposal.parents[guess] == (draft.tree.tokens[parent] if parent else -1)
            assert (source, depth, estimate) == ("ngram", draft.tree.depths[node], proposal.probabilities[guess])


@given(proposals(most=20))
def test_likeliest_path_stands_in_line(proposal: Proposal) -> None:
    """Node j of the path is node j of the tree, so that accepting it moves nothing in the cache."""
    (draft,) = Planner(FLAT).drafts([1000], [proposal], [20], rows=1)
    likely = dict(zip(proposal.tokens, likelihoods(proposal), strict=True))
    node = 0
    while below := draft.tree.children[node]:
        assert likely[draft.tree.tokens[node + 1]] == max(likely[token] for token in below)
        assert draft.tree.parents[node + 1] == node
        node += 1


def chain(*probabilities: float) -> Proposal:
    count = len(probabilities)
    return Proposal("ngram", tuple(range(count)), tuple(range(-1, count - 1)), probabilities)


def count_planned(cost: CostCurve, *proposals: Proposal, rows: int | None = None) -> int:
    """Guesses planned in all."""
    drafts = Planner(cost).drafts(
        [0] * len(proposals), proposals, [MAX_NODES - 1] * len(proposals), rows or len(proposals)
    )
    return sum(len(draft.guesses) for draft in drafts)


def test_no_guesses_where_each_row_costs_its_full_price() -> None:
    assert count_planned(PROPORTIONAL, chain(0.99, 0.99, 0.99)) == 0
    assert count_planned(PROPORTIONAL, chain(0.9), chain(0.9), rows=50) == 2  # beside a prefill a row is nearly free


def test_worthless_guesses_are_left_out_even_where_they_are_free() -> None:
    assert count_planned(FLAT, chain(0.5, 0.0, 0.9)) == 1


def test_flat_stretch_of_the_curve_is_filled_and_no_more() -> None:
    """Four rows cost what one costs, five cost twice as much."""
    stairs = CostCurve({1: 3.0, 4: 3.0, 5: 6.0, 8: 6.0})
    assert count_planned(stairs, chain(*[0.5] * 20)) == 3
    assert count_planned(stairs, chain(0.5), chain(0.5), chain(0.5)) == 1


def test_bump_of_the_curve_is_looked_past() -> None:
    """The second row is dear and those after it are free: one guess alone is not worth it, seven are."""
    bump = CostCurve({1: 3.0, 2: 6.0, 8: 6.0})
    assert count_planned(bump, chain(0.9)) == 0
    assert count_planned(bump, chain(*[0.9] * 10)) == 7


def test_sequences_share_the_step_by_likelihood() -> None:
    stairs = CostCurve({1: 3.0, 5: 3.0, 6: 100.0})
    drafts = Planner(stairs).drafts([0, 0], [chain(0.9, 0.9, 0.9), chain(0.2, 0.9)], [9, 9], rows=2)
    assert [len(draft.guesses) for draft in drafts] == [3, 0]


def test_budgets_hold_the_likeliest_of_their_own_sequence() -> None:
    star = Proposal("ngram", (0, 1, 2, 3), (-1, -1, -1, 0), (0.3, 0.5, 0.1, 0.9))
    first, second = Planner(FLAT).drafts([0, 0], [star, star], [2, 0], rows=2)
    assert guesses_in(first) == [1, 0]
    assert len(second.tree) == 1


def test_nothing_to_draft_for() -> None:
    assert Planner(FLAT).drafts([], [], [], rows=0) == []


def test_verdicts_change_what_is_planned() -> None:
    """A guess row costs 0.3 of a plain step: worth it for a drafter that is right, not for one that is wrong."""
    cost = CostCurve({1: 1.0, 11: 4.0})
    for accepted, expected in ((True, 2), (False, 0)):
        planner = Planner(cost)
        for _ in range(300):
            (draft,) = Planner(FLAT).drafts([5], [chain(0.5, 0.5)], [2], rows=1)
            planner.observe(draft, (0, 1, 2) if accepted else (0,))
        (draft,) = planner.drafts([5], [chain(0.5, 0.5)], [2], rows=1)
        assert len(draft.guesses) == expected


def test_only_guesses_put_to_the_test_are_learned_from() -> None:
    acceptance = Acceptance()
    planner = Planner(FLAT, acceptance)
    # Below the root 0 (right) and 1 (wrong); below 0: 2 (wrong); below 1: 3, which nothing was learnt about.
    proposal = Proposal("ngram", (0, 1, 2, 3), (-1, -1, 0, 1), (0.85, 0.65, 0.45, 0.25))
    (draft,) = planner.drafts([9], [proposal], [4], rows=1)
    right = draft.tree.tokens.index(0)
    planner.observe(draft, (0, right))
    changes = [
        acceptance.probability("ngram", depth, estimate) - estimate
        for depth, estimate in ((1, 0.85), (1, 0.65), (2, 0.45), (2, 0.25))
    ]
    assert [math.copysign(1, change) if change else 0 for change in changes] == [1, -1, -1, 0]
