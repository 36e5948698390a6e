from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from math import sin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.spec.cost import StepCost, Work
from paceline.spec.latency import Step
from paceline.spec.merge import NO_GUESSES, Vote, merge
from paceline.spec.planner import Draft, Planner
from paceline.spec.proposer import Ask, Proposal
from paceline.spec.stats import Acceptance
from paceline.spec.tree import MAX_NODES

FLAT = StepCost({1000: 1.0})  # any step costs the same
PROPORTIONAL = StepCost({1: 1.0})
ALONE = Step(Work(1))  # one decoding row
PROBABILITIES = st.floats(0.01, 0.99)


@st.composite
def proposals(draw: st.DrawFn, most: int) -> Proposal:
    """Token i for guess i, so that a tree's tokens say which guesses it holds."""
    count = draw(st.integers(0, most))
    return Proposal(
        "draft",
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


def drafts(
    planner: Planner,
    given_: Sequence[Proposal],
    budgets: Sequence[int] | None = None,
    rows: int | None = None,
) -> list[Draft]:
    """Sequence i, with pending token 100 + i and all the budget unless said otherwise, was proposed given_[i]."""
    asks = [Ask(f"s{i}", [100 + i], 1, MAX_NODES - 1 if budgets is None else budgets[i]) for i in range(len(given_))]
    step = Step(Work(len(given_) if rows is None else rows))
    return planner.drafts(asks, [merge([proposal]) for proposal in given_], step)


def guesses_in(draft: Draft) -> list[int]:
    return list(draft.tree.tokens[1:])


def rate(cost: StepCost, rows: int, given: Sequence[Proposal], picks: Sequence[Sequence[int]]) -> float:
    """Beside a prompt's chunk guesses cost what they add to the whole step, and its own time is nobody's."""
    tokens = len(given) + sum(likelihoods(p)[guess] for p, chosen in zip(given, picks, strict=True) for guess in chosen)
    plain, more = cost.ms(Work(len(given))), cost.ms(Work(rows + sum(map(len, picks)))) - cost.ms(Work(rows))
    return tokens / (plain + more)


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
    cost, given_ = StepCost(points), [proposal for proposal, _ in asked]
    rows = len(asked) + prefill
    planned = drafts(Planner(cost), given_, [budget for _, budget in asked], rows)
    best = max(rate(cost, rows, given_, picks) for picks in product(*(subtrees(p, budget) for p, budget in asked)))
    assert rate(cost, rows, given_, [guesses_in(draft) for draft in planned]) >= best * (1 - 1e-9)


@given(st.lists(st.tuples(proposals(most=30), st.integers(0, MAX_NODES - 1)), max_size=4))
def test_drafts_are_subtrees_of_what_was_proposed(asked: list[tuple[Proposal, int]]) -> None:
    planned = drafts(Planner(FLAT), [p for p, _ in asked], [budget for _, budget in asked])
    for i, (draft, (proposal, budget)) in enumerate(zip(planned, asked, strict=True)):
        assert (draft.seq_id, draft.tree.tokens[0]) == (f"s{i}", 100 + i)
        picks = guesses_in(draft)
        assert len(picks) == len(set(picks)) == min(budget, len(proposal.tokens))  # a flat curve takes all it may
        assert len(draft.picks) == len(picks)
        for node, (guess, pick) in enumerate(zip(picks, draft.picks, strict=True), start=1):
            parent = draft.tree.parents[node]
            assert proposal.parents[guess] == (draft.tree.tokens[parent] if parent else -1)
            assert draft.guesses.tokens[pick] == guess
            assert draft.guesses.depths[pick] == draft.tree.depths[node]
            assert [vote.estimate for vote in draft.guesses.votes[pick]] == [proposal.probabilities[guess]]


@given(proposals(most=20))
def test_likeliest_path_stands_in_line(proposal: Proposal) -> None:
    """Node j of the path is node j of the tree, so that accepting it moves nothing in the cache."""
    (draft,) = drafts(Planner(FLAT), [proposal])
    likely = dict(zip(proposal.tokens, likelihoods(proposal), strict=True))
    node = 0
    while below := draft.tree.children[node]:
        assert likely[draft.tree.tokens[node + 1]] == max(likely[token] for token in below)
        assert draft.tree.parents[node + 1] == node
        node += 1


def chain(*probabilities: float) -> Proposal:
    count = len(probabilities)
    return Proposal("draft", tuple(range(count)), tuple(range(-1, count - 1)), probabilities)


def count_planned(cost: StepCost, *proposals: Proposal, rows: int | None = None) -> int:
    """Guesses planned in all."""
    return sum(len(draft.picks) for draft in drafts(Planner(cost), proposals, rows=rows))


def test_no_guesses_where_each_row_costs_its_full_price() -> None:
    assert count_planned(PROPORTIONAL, chain(0.99, 0.99, 0.99)) == 0
    assert count_planned(PROPORTIONAL, chain(0.95), chain(0.95), rows=50) == 0  # nor beside a prompt's chunk
    assert count_planned(FLAT, chain(0.95), chain(0.95), rows=50) == 2


def test_worthless_guesses_are_left_out_even_where_they_are_free() -> None:
    assert count_planned(FLAT, chain(0.5, 0.0, 0.9)) == 1


def test_flat_stretch_of_the_curve_is_filled_and_no_more() -> None:
    """Four rows cost what one costs, five cost twice as much."""
    stairs = StepCost({1: 3.0, 4: 3.0, 5: 6.0, 8: 6.0})
    assert count_planned(stairs, chain(*[0.5] * 20)) == 3
    assert count_planned(stairs, chain(0.5), chain(0.5), chain(0.5)) == 1


def test_bump_of_the_curve_is_looked_past() -> None:
    """The second row is dear and those after it are free: one guess alone is not worth it, seven are."""
    bump = StepCost({1: 3.0, 2: 6.0, 8: 6.0})
    assert count_planned(bump, chain(0.9)) == 0
    assert count_planned(bump, chain(*[0.9] * 10)) == 7


def test_behind_many_keys_fewer_guesses_are_worth_a_row() -> None:
    """A row costs 0.1 of a plain step, and as much again for 1000 keys it looks at."""
    planner = Planner(StepCost({1: 1.0, 101: 11.0}, seen_ms=1e-4))
    counts = []
    for keys in (10, 1000, 4000):
        ask = Ask("s", range(keys), 1, MAX_NODES - 1)
        (draft,) = planner.drafts([ask], [merge([chain(*[0.8] * 12)])], ALONE)
        counts.append(len(draft.picks))
    assert counts[0] > counts[1] > counts[2] > 0


def test_sequences_share_the_step_by_likelihood() -> None:
    stairs = StepCost({1: 3.0, 5: 3.0, 6: 100.0})
    first, second = drafts(Planner(stairs), [chain(0.9, 0.9, 0.9), chain(0.2, 0.9)])
    assert [len(first.picks), len(second.picks)] == [3, 0]
    assert [first.reason, second.reason] == ["best", "not worth it"]


def test_budgets_hold_the_likeliest_of_their_own_sequence() -> None:
    star = Proposal("draft", (0, 1, 2, 3), (-1, -1, -1, 0), (0.3, 0.5, 0.1, 0.9))
    first, second, third = drafts(Planner(FLAT), [star, star, star], [2, 0, 4])
    assert guesses_in(first) == [1, 0]
    assert len(second.tree) == 1
    assert [first.reason, third.reason] == ["budget", "best"]


def test_nothing_to_draft_for() -> None:
    assert drafts(Planner(FLAT), []) == []
    (draft,) = drafts(Planner(FLAT), [Proposal("draft")])
    assert (len(draft.tree), draft.reason) == (1, "no guesses")


def test_drafters_that_agree_share_a_row() -> None:
    """Two that are right half the time are worth a row together where one alone is not."""
    cost = StepCost({1: 1.0, 11: 7.0})
    one, other = Proposal("a", (7, 8), (-1, -1), (0.5, 0.1)), Proposal("b", (7,), (-1,), (0.5,))
    for given_, expected in (([one], []), ([one, other], [7])):
        (draft,) = Planner(cost).drafts([Ask("s", [1], 1, 9)], [merge(given_)], ALONE)
        assert guesses_in(draft) == expected
    assert draft.guesses.votes[draft.picks[0]] == (Vote("a", 0, 0.5), Vote("b", 0, 0.5))


def test_verdicts_change_what_is_planned() -> None:
    """A guess row costs 0.3 of a plain step: worth it for a drafter that is right, not for one that is wrong."""
    cost = StepCost({1: 1.0, 11: 4.0})
    for tokens, expected in (((0, 1, 9), 2), ((9,), 0)):
        planner = Planner(cost)
        for _ in range(300):
            (draft,) = drafts(planner, [chain(0.5, 0.5)])
            planner.observe(draft, tokens)
        (draft,) = drafts(planner, [chain(0.5, 0.5)])
        assert len(draft.picks) == expected


def test_chances_are_those_that_decided() -> None:
    """Of each pick, in the order of the nodes; what the step teaches shows in the next one's."""
    planner = Planner(FLAT)
    proposal = Proposal("x", (0, 1, 2), (-1, -1, 0), (0.25, 0.5, 0.75))
    (first,) = drafts(planner, [proposal])
    assert first.tree.tokens[1:] == (1, 0, 2)
    assert planner.chances(first) == [0.5, 0.25, 0.75]  # nothing is learnt yet
    planner.observe(first, (0, 2))
    (second,) = drafts(planner, [proposal])
    chances = dict(zip(second.tree.tokens[1:], planner.chances(second), strict=True))
    assert chances[0] / 0.25 > chances[1] / 0.5 != 1.0  # the one that was right has gained more
    assert planner.chances(Draft(second.tree, "off")) == []


def test_what_was_not_worth_a_row_is_watched_all_the_same() -> None:
    planner, cost = Planner(StepCost({1: 1.0, 11: 6.0})), []
    for _ in range(40):
        (draft,) = drafts(planner, [chain(0.2)])
        planner.observe(draft, (0,))
        cost.append(len(draft.picks))
    assert (cost[0], cost[-1]) == (0, 1)


def test_only_guesses_put_to_the_test_are_learned_from() -> None:
    acceptance = Acceptance()
    planner = Planner(FLAT, acceptance)
    # Below the root 0 (right) and 1 (wrong); below 0: 2 (wrong); below 1: 3, which nothing was learnt about.
    proposal = Proposal("x", (0, 1, 2, 3), (-1, -1, 0, 1), (0.85, 0.65, 0.45, 0.25))
    seen: list[tuple[int, float, bool]] = []
    acceptance.observe = lambda _, depth, votes, hit: seen.append((depth, votes[0].estimate, hit))  # type: ignore[method-assign]
    (draft,) = drafts(planner, [proposal])
    planner.observe(draft, (0, 9))
    assert seen == [(1, 0.85, True), (1, 0.65, False), (2, 0.45, False)]
    planner.observe(draft, ())  # a step without a token judges nothing
    assert len(seen) == 3


@pytest.mark.parametrize("per_row", [0.02, 0.05, 0.3])
@pytest.mark.parametrize("confidence", ["high", "random"])
def test_a_drafter_that_is_always_wrong_costs_next_to_nothing_after_twenty_steps(
    per_row: float, confidence: str
) -> None:
    """Time of 400 steps after the first 20 against plain ones, each row `per_row` of a plain step, on a machine whose
    pace wanders.
    """
    points = {1: 1.0, 101: 1.0 + 100 * per_row}
    cost, planner, chance = StepCost(points), Planner(StepCost(points)), random.Random(3)
    spent = 0.0
    for step in range(420):
        estimates = [0.9 if confidence == "high" else chance.uniform(0.05, 1.0) for _ in range(15)]
        (draft,) = drafts(planner, [chain(*estimates)])
        ms = cost.ms(Work(len(draft.tree)))
        spent += ms if step >= 20 else 0.0
        planner.observe(draft, (99,))
        planner.observe_step(Work(len(draft.tree)), ms * (1.2 + 0.3 * sin(step / 30)) * chance.gauss(1, 0.05))
    assert spent <= 400 * 1.02


@pytest.mark.parametrize("share", [0.005, 0.05, 0.2, 1.0])
def test_one_that_costs_time_and_is_always_wrong_is_hardly_asked_after_twenty_steps(share: float) -> None:
    """Asking takes `share` of a plain step; trying again now and then is in the sum."""
    cost = StepCost({1: 1.0, 101: 6.0})
    planner = Planner(cost)
    ask = [Ask("s", [1], 1, 15)]
    spent = 0.0
    for step in range(420):
        asked = planner.pays("dear", share, [0], ask, [NO_GUESSES], ALONE)
        (draft,) = planner.drafts(ask, [merge([chain(*[0.8] * 6)]) if asked else NO_GUESSES], ALONE)
        spent += share * asked + cost.ms(Work(len(draft.tree))) if step >= 20 else 0.0
        planner.observe(draft, (99,))
    assert spent <= 400 * 1.02


def test_one_that_pays_is_asked_and_one_that_recovers_is_asked_again() -> None:
    cost = StepCost({1: 1.0, 101: 6.0})
    planner = Planner(cost)
    ask = [Ask("s", [1], 1, 15)]
    asked = {True: 0, False: 0}
    for phase, right in enumerate((True, False, True)):
        for step in range(1500):
            if planner.pays("dear", 0.2, [0], ask, [NO_GUESSES], ALONE):
                (draft,) = planner.drafts(ask, [merge([chain(0.8, 0.8)])], ALONE)
                planner.observe(draft, (0, 1, 9) if right else (99,))
                asked[right] += phase != 2 or step > 1400
    assert asked[False] < 150
    assert asked[True] > 1550


def test_one_that_finds_what_is_known_already_is_not_worth_its_time() -> None:
    cost = StepCost({1: 1.0, 101: 6.0})
    planner = Planner(cost)
    ask = [Ask("s", [1], 1, 15)]
    free = chain(0.9, 0.9)
    dear = Proposal("dear", free.tokens, free.parents, free.probabilities)
    asked = 0
    for step in range(300):
        pays = planner.pays("dear", 0.5, [0], ask, [merge([free])], ALONE)
        (draft,) = planner.drafts(ask, [merge([free, dear] if pays else [free])], ALONE)
        planner.observe(draft, (0, 1, 9))
        asked += pays and step > 30
    assert asked < 12


def test_steps_of_catching_up_teach_nothing_about_guesses() -> None:
    """It gives no guess for fifty steps; asked for a price that a token pays, it is asked on if it is catching up."""
    for catching_up in (True, False):
        planner, ask = Planner(StepCost({1: 1.0, 101: 6.0})), [Ask("s", [1], 1, 15)]
        asked = 0
        for _ in range(50):
            pays = planner.pays("dear", 0.5, [0], ask, [NO_GUESSES], ALONE)
            planner.drafts(ask, [merge([Proposal("dear", catching_up=catching_up)] if pays else [])], ALONE)
            asked += pays
        assert (asked == 50) == catching_up
