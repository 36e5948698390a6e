from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle, islice, pairwise

from hypothesis import given
from hypothesis import strategies as st

from paceline.spec.ngram import NGram
from paceline.spec.proposer import Ask, Proposal

TEXTS = st.integers(1, 5).flatmap(lambda vocab: st.lists(st.integers(0, vocab - 1), min_size=1, max_size=80))


def propose(tokens: Sequence[int], most: int = 63, drafter: NGram | None = None, seq_id: str = "s") -> Proposal:
    (proposal,) = (drafter or NGram()).propose([Ask(seq_id, tokens, len(tokens), most)])
    return proposal


def lines(proposal: Proposal) -> list[tuple[int, ...]]:
    """The tokens from the pending token's child down to each guess."""
    found: list[tuple[int, ...]] = []
    for token, parent in zip(proposal.tokens, proposal.parents, strict=True):
        found.append(((*found[parent], token)) if parent >= 0 else (token,))
    return found


def likelihoods(proposal: Proposal) -> list[float]:
    found: list[float] = []
    for parent, p in zip(proposal.parents, proposal.probabilities, strict=True):
        found.append(p if parent < 0 else p * found[parent])
    return found


@given(TEXTS)
def test_guesses_are_what_followed_the_last_two_tokens_before(tokens: list[int]) -> None:
    """Each line of guesses followed the last two tokens somewhere, going round where the text ends."""
    proposal = propose(tokens)
    places = [i for i in range(2, len(tokens)) if tokens[i - 2 : i] == tokens[-2:]]
    followed = [tuple(islice(cycle(tokens[i:]), 16)) for i in places]
    assert all(any(f[: len(line)] == line for f in followed) for line in lines(proposal))
    assert bool(proposal.tokens) == bool(places)


@given(TEXTS, st.integers(0, 20))
def test_the_best_come_first_and_a_limit_keeps_them(tokens: list[int], most: int) -> None:
    everything, limited = propose(tokens, 1000), propose(tokens, most)
    assert all(low >= high for low, high in pairwise(likelihoods(everything)))
    assert len(limited.tokens) == min(most, len(everything.tokens))
    assert limited == Proposal(
        everything.source, everything.tokens[:most], everything.parents[:most], everything.probabilities[:most]
    )


@given(TEXTS, st.lists(st.integers(1, 6), max_size=30))
def test_index_that_grows_equals_one_made_at_once(tokens: list[int], strides: list[int]) -> None:
    """The text grows in place by accepted runs, as the engine's does."""
    drafter, seen, left = NGram(), tokens[:1], tokens[1:]
    for stride in [*strides, len(tokens)]:
        assert propose(seen, drafter=drafter) == propose(list(seen))
        seen += left[:stride]
        left = left[stride:]


def test_several_continuations_make_a_branching_tree() -> None:
    #           1 2 -> 3 4 | 5 6 | 3 7
    text = [1, 2, 3, 4, 90, 1, 2, 5, 6, 91, 1, 2, 3, 7, 92, 1, 2]
    proposal = propose(text)
    children = dict(zip(lines(proposal), proposal.probabilities, strict=True))
    assert {line for line in children if len(line) == 1} == {(3,), (5,)}
    assert {line for line in children if len(line) == 2} == {(3, 4), (3, 7), (5, 6)}
    assert children[3,] > children[5,]  # twice against once
    assert children[3, 4] == children[3, 7]
    assert children[3,] + children[5,] < 1  # something else may come


def test_longer_match_outweighs_a_later_shorter_one() -> None:
    text = [7, 8, 1, 2, 50, 0, 0, 9, 1, 2, 60, 0, 9, 1, 2, 60, 0, 7, 8, 1, 2]
    proposal = propose(text)
    assert proposal.tokens[0] == 50
    assert 60 in proposal.tokens


def test_estimates_grow_with_the_evidence() -> None:
    once = propose([1, 2, 3, 9, 1, 2])
    longer = propose([5, 6, 1, 2, 3, 9, 5, 6, 1, 2])
    twice = propose([1, 2, 3, 9, 1, 2, 3, 8, 1, 2])
    assert once.probabilities[0] < twice.probabilities[0] < longer.probabilities[0] < 1
    assert once.probabilities[0] == 1 / 2.5  # one pair of tokens seen once is little evidence


def test_of_many_places_the_latest_are_looked_at() -> None:
    text = [token for i in range(12) for token in (1, 2, 100 + i, 200 + i)] + [1, 2]
    firsts = {line[0] for line in lines(propose(text))}
    assert firsts == {100 + i for i in range(4, 12)}


def test_text_that_repeats_itself_gives_long_lines() -> None:
    period = list(range(30))
    tokens = period * 3
    proposal = propose(tokens, 12)
    assert lines(proposal)[-1] == tuple(range(12))
    assert math.prod(proposal.probabilities) > 0.1


def test_nothing_is_proposed_where_nothing_matches() -> None:
    for tokens in ([1], [1, 1], [1, 2], list(range(50)), [1, 2, 3, 4, 2]):
        assert propose(tokens) == Proposal("ngram")
    assert propose([1, 2, 3, 1, 2], most=0) == Proposal("ngram")


def test_shortest_texts_with_a_match() -> None:
    assert propose([1, 1, 1]).tokens == (1,) * 16
    assert lines(propose([1, 2, 1, 2]))[:3] == [(1,), (1, 2), (1, 2, 1)]


def test_sequences_are_kept_apart() -> None:
    drafter = NGram()
    one, other = [1, 2, 3, 1, 2], [1, 2, 4, 1, 2]
    asks = [Ask("one", one, 5, 8), Ask("other", other, 5, 8)]
    assert [p.tokens[0] for p in drafter.propose(asks)] == [3, 4]
    assert [p.tokens[0] for p in drafter.propose(asks[::-1])] == [4, 3]


def test_forgotten_sequence_leaves_nothing_behind() -> None:
    drafter = NGram()
    propose([1, 2, 3] * 20, drafter=drafter)
    drafter.forget("s")
    text = [8, 9, 7, 8, 9]  # another text under the same name
    assert propose(text, drafter=drafter) == propose(text)
    assert propose([1, 2], drafter=drafter, seq_id="t") == Proposal("ngram")
