from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.spec.proposer import Ask, Proposal
from paceline.spec.replies import ReplyStore
from paceline.spec.suffix import Suffix

TEXTS = st.integers(1, 4).flatmap(lambda vocab: st.lists(st.integers(0, vocab - 1), min_size=1, max_size=40))


def propose(
    tokens: Sequence[int], most: int = 15, drafter: Suffix | None = None, prompt: int | None = None, **more: object
) -> Proposal:
    ask = Ask("s", tokens, len(tokens) if prompt is None else prompt, most, **more)  # type: ignore[arg-type]
    (proposal,) = (drafter or Suffix()).propose([ask])
    return proposal


def lines(proposal: Proposal) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for token, parent in zip(proposal.tokens, proposal.parents, strict=True):
        found.append(((*found[parent], token)) if parent >= 0 else (token,))
    return found


@given(TEXTS)
def test_first_guesses_followed_the_last_token_before(tokens: list[int]) -> None:
    followed = {after for before, after in pairwise(tokens) if before == tokens[-1]}
    first = {line[0] for line in lines(propose(tokens, most=63)) if len(line) == 1}
    assert first <= followed
    assert bool(first) == bool(followed)


@settings(max_examples=60)
@given(TEXTS, st.integers(1, 10))
def test_text_that_grows_is_guessed_at_as_if_it_were_new(tokens: list[int], step: int) -> None:
    drafter, seen = Suffix(), tokens[:1]
    propose(seen, drafter=drafter)
    for start in range(1, len(tokens), step):
        seen += tokens[start : start + step]
        assert propose(seen, drafter=drafter) == propose(list(seen))


def test_what_followed_is_proposed_whole() -> None:
    proposal = propose([1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3], most=5)
    assert lines(proposal)[-1] == (4, 5, 6, 7, 8)
    assert list(proposal.probabilities) == sorted(proposal.probabilities)  # the longer the match, the surer


def test_what_followed_more_often_comes_first() -> None:
    text = [1, 2, 3, 9, 1, 2, 4, 9, 1, 2, 3, 9, 1, 2, 3, 9, 1, 2]
    proposal = propose(text, most=4)
    by_line = dict(zip(lines(proposal), proposal.probabilities, strict=True))
    assert by_line[3,] > 0.6 > by_line.get((4,), 0.0)


def test_a_longer_match_outweighs_a_frequent_shorter_one() -> None:
    text = [7, 1, 2, 50, *([8, 2, 60] * 4), 7, 1, 2]
    assert lines(propose(text, most=1)) == [(50,)]
    assert {(50,), (60,)} <= set(lines(propose(text, most=12)))


def test_text_that_goes_round_goes_on_going_round() -> None:
    assert lines(propose([1, 2, 3] * 5, most=9))[-1] == (1, 2, 3, 1, 2, 3, 1, 2, 3)


def test_nothing_seen_nothing_guessed() -> None:
    for tokens in ([1], [1, 2, 3]):
        assert propose(tokens) == Proposal("suffix")
    assert propose([1, 2, 1], most=0) == Proposal("suffix")


def test_the_prediction_is_guessed_from_its_beginning_and_found_again_after_a_change() -> None:
    prediction = (5, 6, 7, 8, 9, 10, 11)
    drafter, tokens = Suffix(), [1, 2, 3]

    def best() -> tuple[int, ...]:
        return lines(propose(tokens, 3, drafter, prompt=3, prediction=prediction))[-1]

    assert best() == (5, 6, 7)
    tokens += [5, 6]
    assert best() == (7, 8, 9)
    tokens += [99, 8, 9]  # 7 was changed
    assert best()[:2] == (10, 11)


def test_the_prediction_outweighs_the_prompt() -> None:
    tokens = [5, 6, 70, 5, 6, 70, 1, 5, 6]
    assert lines(propose(tokens, 1, prompt=7, prediction=(5, 6, 7, 8))) == [(7,)]


def replied(drafter: Suffix, key: str, reply: Sequence[int], prompt: Sequence[int] = (1, 2)) -> None:
    tokens = list(prompt)
    drafter.propose([Ask("old", tokens, len(prompt), 8, reuse_key=key)])
    tokens += reply  # as the engine does: the list grows after the call
    drafter.forget("old")
    propose([0], drafter=drafter)  # indexing is done with the next asks


def test_earlier_replies_of_the_key_are_drafted_from_and_no_others() -> None:
    drafter = Suffix()
    replied(drafter, "mine", [5, 6, 7, 8, 9])
    replied(drafter, "", [5, 60])
    replied(drafter, "other", [5, 61])

    def guesses(key: str) -> Proposal:
        drafter.forget("s")
        return propose([3, 4, 5], 4, drafter, prompt=2, reuse_key=key)

    assert lines(guesses("mine"))[-1] == (6, 7, 8, 9)
    assert guesses("other").tokens == (61,)
    assert guesses("").tokens == guesses("nobody's").tokens == ()


def test_prompts_are_not_kept() -> None:
    drafter = Suffix()
    replied(drafter, "k", [5, 6], prompt=[40, 41, 42])
    assert propose([3, 40], 4, drafter, prompt=1, reuse_key="k").tokens == ()


def test_replies_that_come_in_meanwhile_are_found_by_those_that_run() -> None:
    drafter = Suffix(ReplyStore(room=64))
    tokens = [3, 4, 5, 6]
    assert propose(tokens, 4, drafter, prompt=2, reuse_key="k").tokens == ()
    for i in range(12):  # more than there is room for
        replied(drafter, "k", [5, 6, 100 + i, 7, 8])
    assert propose(tokens, 15, drafter, prompt=2, reuse_key="k").tokens
    tokens += [111, 7]
    assert propose(tokens, 1, drafter, prompt=2, reuse_key="k").tokens == (8,)


@pytest.mark.parametrize("what", ["prompt", "prediction"])
def test_a_long_text_is_taken_in_over_several_steps(what: str) -> None:
    long, drafter = [*range(100, 3100), 5, 6, 7, 8], Suffix()
    tokens = [*long, 1, 5, 6] if what == "prompt" else [1, 5, 6]
    more = {"prediction": tuple(long)} if what == "prediction" else {}
    for step in range(4):
        proposal = propose(tokens, 2, drafter, prompt=len(tokens) - 2, **more)
        if step == 0:
            assert proposal.tokens == ()
    assert proposal.tokens == (7, 8)


def test_forgotten_is_forgotten() -> None:
    drafter = Suffix()
    assert propose([1, 2, 3, 1, 2], drafter=drafter).tokens
    drafter.forget("s")
    assert propose([1, 2], drafter=drafter) == Proposal("suffix")


def test_a_step_indexes_a_portion_of_a_long_reply_and_the_next_ones_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ReplyStore()
    drafter, indexed, work = Suffix(store), list[int](), store.work
    monkeypatch.setattr(store, "work", lambda most: [indexed.append(done := work(most)), done][1])
    replied(drafter, "k", range(100, 3100))
    for _ in range(3):
        assert propose([0], drafter=drafter).tokens == ()
    assert max(indexed) <= 1024
    assert sum(indexed) == 3001
    drafter.forget("s")
    assert propose([3, 3090], 4, drafter, prompt=1, reuse_key="k").tokens == (3091, 3092, 3093, 3094)


def test_text_that_was_taken_in_is_not_walked_through_again() -> None:
    class Text(list[int]):
        """Gives stretches of itself, and is never read from the beginning on."""

        def __iter__(self) -> Iterator[int]:
            raise AssertionError("the whole text is read")

    drafter, tokens = Suffix(), Text([1, 2, 3, 4, 1, 2])
    assert propose(tokens, 1, drafter, prompt=2, prediction=Text([9, 8])).tokens == (3,)
    tokens += [3]
    assert propose(tokens, 1, drafter, prompt=2, prediction=Text([9, 8])).tokens == (4,)


def after_one(*followers: int) -> list[int]:
    """A text that ends with a 1, and in which each 1 before it stands behind another token."""
    return [token for i, follower in enumerate(followers) for token in (1000 + i, 1, follower)] + [999, 1]


def test_what_followed_often_is_guessed_however_late_it_came() -> None:
    proposal = propose(after_one(*range(10, 18), *[99] * 20), most=1)
    assert proposal.tokens == (99,)
    assert proposal.probabilities[0] == pytest.approx(20 / (28 + 2.1))


def test_what_is_not_looked_at_counts_as_something_else() -> None:
    assert propose(after_one(*range(10, 18)), most=63).probabilities[0] == pytest.approx(1 / (8 + 2.1))
    proposal = propose(after_one(*range(10, 22), 30, 30), most=63)
    assert (proposal.tokens[0], proposal.probabilities[0]) == (30, pytest.approx(2 / (14 + 2.1)))
    assert propose(after_one(*range(10, 40)), most=63).tokens == ()  # each once in thirty: not worth a row
