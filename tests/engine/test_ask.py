from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import make_request
from grammars import small_tokenizer

from paceline.engine.ask import ask_of
from paceline.engine.request import Speculation
from paceline.engine.scheduler import Row
from paceline.engine.sequence import Sequence
from paceline.server.grammars import Grammars


@pytest.fixture(scope="module")
def grammars() -> Grammars:
    return Grammars(small_tokenizer(), 128)


def test_a_drafter_learns_of_the_sequence_what_may_help_it() -> None:
    request = make_request("r", [1, 2, 3], temperature=0.5, seed=9)
    request = replace(request, priority="background", speculation=Speculation(prediction=(4,), reuse_key="key"))
    request = replace(request, sampling=replace(request.sampling, stop_ids=frozenset({2})))
    seq = Sequence(request, arrival=0)
    seq.tokens.append(7)
    seq.blocks.append(5)
    ask = ask_of(Row(seq, 1, samples=True, guesses=6))
    assert (ask.seq_id, list(ask.tokens), ask.prompt_length, ask.max_guesses) == ("r", [1, 2, 3, 7], 3, 6)
    assert (list(ask.blocks), ask.seed, ask.temperature) == ([5], 9, 0.5)
    assert (ask.prediction, ask.reuse_key, ask.rank, ask.constraint) == ((4,), "key", 2, None)
    assert ask.stop_ids == {2}


def test_guesses_are_held_to_what_may_follow_the_last_token(grammars: Grammars) -> None:
    a, b = small_tokenizer().encode("a")[0], small_tokenizer().encode("b")[0]
    seq = Sequence(make_request("r", [1, 2], grammar=grammars.compile('start: "a" "b" "a"', "x")), arrival=0)
    seq.tokens.append(a)
    constraint = ask_of(Row(seq, 1, samples=True, guesses=4)).constraint
    assert constraint is not None
    assert [constraint.fits([token]) for token in (a, b)] == [0, 1]


def test_a_grammar_that_breaks_is_left_to_the_walk(grammars: Grammars) -> None:
    wrong = small_tokenizer().encode("x")
    seq = Sequence(make_request("r", [1, 2], grammar=grammars.compile('start: "a"', "x")), arrival=0)
    seq.tokens += wrong
    assert ask_of(Row(seq, 1, samples=True, guesses=4)).constraint is None
