"""What every drafter keeps to, whatever it guesses from."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.spec.proposer import Ask, Proposal, Proposer, Verdict
from paceline.spec.suffix import Suffix

DRAFTERS: list[Callable[[], Proposer]] = [Suffix]
TOKENS = st.integers(1, 4).flatmap(lambda vocab: st.lists(st.integers(0, vocab - 1), min_size=1, max_size=60))


def assert_well_formed(proposal: Proposal, ask: Ask, name: str) -> None:
    count = len(proposal.tokens)
    assert proposal.source == name
    assert len(proposal.parents) == len(proposal.probabilities) == count <= ask.max_guesses
    assert all(-1 <= parent < guess for guess, parent in enumerate(proposal.parents))
    assert all(0.0 < probability <= 1.0 for probability in proposal.probabilities)
    assert len(set(zip(proposal.parents, proposal.tokens, strict=True))) == count, "two equal children of one parent"


@settings(max_examples=150)
@given(texts=st.lists(st.tuples(TOKENS, st.integers(0, 63)), max_size=3))
@pytest.mark.parametrize("make", DRAFTERS)
def test_proposals_are_well_formed_and_asks_are_left_alone(
    make: Callable[[], Proposer], texts: list[tuple[list[int], int]]
) -> None:
    drafter = make()
    asks = [Ask(f"s{i}", tokens, len(tokens) // 2, most) for i, (tokens, most) in enumerate(texts)]
    before = [list(tokens) for tokens, _ in texts]
    proposals = drafter.propose(asks)
    assert len(proposals) == len(asks)
    for proposal, ask in zip(proposals, asks, strict=True):
        assert_well_formed(proposal, ask, drafter.name)
    assert [list(ask.tokens) for ask in asks] == before
    assert drafter.propose(asks) == proposals, "the same question has the same answer"


@pytest.mark.parametrize("make", DRAFTERS)
def test_sequences_come_and_go_in_any_order(make: Callable[[], Proposer]) -> None:
    drafter = make()
    drafter.forget("never seen")
    drafter.observe([Verdict("never seen", (0, 1))])
    text = [1, 2, 3, 1, 2]
    first = drafter.propose([Ask("a", text, 2, 8)])
    drafter.observe([Verdict("a", (0,))])
    drafter.forget("a")
    drafter.forget("a")
    assert drafter.propose([Ask("a", text, 2, 8)]) == first
