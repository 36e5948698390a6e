"""The stop string automaton against looking at every prefix of the text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.engine.errors import RequestError
from paceline.server.stop_strings import StopStrings

LETTERS = st.text("ab😀", min_size=1, max_size=5)


def first_match(text: str, stops: list[str]) -> tuple[int, int]:
    """(end, length) of the match that is complete first, the longest of those; (-1, 0) if there is none."""
    for end in range(1, len(text) + 1):
        lengths = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if lengths:
            return end, max(lengths)
    return -1, 0


@given(stops=st.lists(LETTERS, max_size=6), text=st.text("ab😀", max_size=30), cut=st.integers(0, 30))
def test_the_first_complete_match_is_found_however_the_text_arrives(stops: list[str], text: str, cut: int) -> None:
    automaton = StopStrings(stops)
    cut = min(cut, len(text))
    state, end, length = automaton.scan(0, text[:cut])
    if not length:
        state, more, length = automaton.scan(state, text[cut:])
        end += more
    expected, size = first_match(text, stops)
    assert (end, length) == (expected, size) if size else not length
    if not size:
        held = max((n for n in range(len(text) + 1) for s in stops if s[:n] == text[len(text) - n :]), default=0)
        assert automaton.pending(state) == held


def test_of_matches_complete_at_once_the_longest_wins() -> None:
    assert StopStrings(["c", "bc", "abc"]).scan(0, "xabc")[1:] == (4, 3)


def test_a_match_inside_a_possible_longer_one_does_not_wait() -> None:
    assert StopStrings(["abcd", "bc"]).scan(0, "abcd")[1:] == (3, 2)


def test_no_stop_strings_find_nothing() -> None:
    none = StopStrings([])
    assert none.scan(0, "anything") == (0, 8, 0)
    assert none.pending(0) == 0


def test_every_character_is_stepped_over_once() -> None:
    """A long stop that nearly matches over and over is where searching again and again would be quadratic."""
    steps = 0

    class Counting(dict[str, int]):
        def get(self, key: str, default: int = 0) -> int:  # type: ignore[override]
            nonlocal steps
            steps += 1
            return super().get(key, default)

        def __contains__(self, key: object) -> bool:
            nonlocal steps
            steps += 1
            return super().__contains__(key)

    stop = "a" * 2000 + "b"
    automaton = StopStrings([stop])
    automaton._next = [Counting(table) for table in automaton._next]
    text = ("a" * 1999 + "c") * 20
    state = 0
    for letter in text:
        state, _, length = automaton.scan(state, letter)
        assert not length
    assert steps <= 4 * len(text)


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(RequestError) as caught:
        StopStrings(["a", ""])
    assert caught.value.param == "stop"
