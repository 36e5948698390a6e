"""A grammar that needs more states than one may have: whom that concerns, and for how long."""

from __future__ import annotations

import random

import pytest
from grammars import allowed, small_tokenizer

from paceline.engine.errors import GrammarError
from paceline.server.grammars import Grammars

# Each text leads to a state of its own: a lexer keeps as many as there are texts, until it may keep no more.
ENDLESS = "start: /(a|b)*a(a|b){40}c/"


def letters(seed: int, count: int) -> list[int]:
    (a, b), pick = small_tokenizer().encode("ba"), random.Random(seed)
    return [pick.choice((a, b)) for _ in range(count)]


def test_guesses_take_nothing_from_what_replies_may_use() -> None:
    tokenizer = small_tokenizer()
    grammars = Grammars(tokenizer, tokenizer.vocab_size)
    grammar = grammars.compile(ENDLESS, "x")
    matcher, beside = grammar.matcher(), grammar.matcher()
    may = allowed(matcher)
    guesses = (letters(seed, 200) for seed in range(10_000))
    assert any(matcher.fits(guess) < len(guess) for guess in guesses), "so many cannot be judged"
    assert matcher.fits(letters(0, 1)) == 0
    for each in (matcher, beside, grammar.matcher()):
        assert allowed(each) == may
        each.advance(letters(0, 9))
        assert allowed(each) == may
        assert list(each.forced()) == []
    assert grammars.compile(ENDLESS, "x").matcher().fits(letters(0, 9)) == 9, "later replies have guesses again"


def test_a_grammar_that_grew_too_complex_can_be_followed_again() -> None:
    tokenizer = small_tokenizer()
    grammars = Grammars(tokenizer, tokenizer.vocab_size)
    grammar = grammars.compile(ENDLESS, "x")
    matcher = grammar.matcher()
    may = allowed(matcher)
    with pytest.raises(GrammarError, match=r"too many states.*send the request again"):
        matcher.advance(letters(0, 100_000))
    again = grammars.compile(ENDLESS, "x")
    assert again is not grammar
    assert allowed(again.matcher()) == may
    assert grammars.compile(ENDLESS, "x") is again
