from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.spec.automaton import ROOT, Cursor, SuffixAutomaton

SHORT = st.integers(1, 4).flatmap(lambda vocab: st.lists(st.integers(0, vocab - 1), max_size=18))  # < 32: all counted


def automaton_of(tokens: Sequence[int]) -> SuffixAutomaton:
    automaton = SuffixAutomaton()
    automaton.extend(tokens)
    return automaton


def occurrences(text: Sequence[int], part: Sequence[int]) -> int:
    return sum(list(text[i : i + len(part)]) == list(part) for i in range(len(text) - len(part) + 1))


def find(automaton: SuffixAutomaton, part: Sequence[int]) -> int | None:
    state: int | None = ROOT
    for token in part:
        state = automaton.after[state].get(token) if state is not None else None
    return state


def longest_known_suffix(text: Sequence[int], read: Sequence[int]) -> int:
    return next(size for size in range(len(read), -1, -1) if size == 0 or occurrences(text, read[len(read) - size :]))


@given(SHORT)
def test_every_stretch_is_found_with_its_count_and_nothing_else(tokens: list[int]) -> None:
    automaton = automaton_of(tokens)
    for start in range(len(tokens)):
        for stop in range(start + 1, len(tokens) + 1):
            state = find(automaton, tokens[start:stop])
            assert state is not None
            assert automaton.count[state] == occurrences(tokens, tokens[start:stop])
            assert automaton.length[automaton.link[state]] < stop - start <= automaton.length[state]
        for token in range(5):
            absent = [*tokens[start:], token]
            assert (find(automaton, absent) is None) == (occurrences(tokens, absent) == 0)


@given(SHORT)
def test_link_of_the_whole_is_the_longest_suffix_that_was_there_before(tokens: list[int]) -> None:
    automaton = automaton_of(tokens)
    assert automaton.size == len(tokens)
    if tokens:
        repeated = automaton.length[automaton.link[automaton.whole]]
        assert repeated == max(s for s in range(len(tokens)) if s == 0 or occurrences(tokens, tokens[-s:]) > 1)


@given(st.lists(st.integers(0, 2), max_size=200))
def test_states_and_transitions_are_few(tokens: list[int]) -> None:
    automaton = automaton_of(tokens)
    assert len(automaton.length) <= max(2 * len(tokens), 2)
    assert sum(map(len, automaton.after)) <= 3 * len(tokens)


def test_text_that_goes_round_takes_no_longer() -> None:
    """Counts are cut off there; found it is all the same."""
    automaton = automaton_of([1, 2, 3] * 700)
    assert automaton.length[automaton.link[automaton.whole]] == 2097
    assert automaton.count[automaton.whole] == 1
    assert find(automaton, [3, 1, 2, 3]) is not None


@settings(max_examples=60)
@given(st.lists(st.tuples(st.booleans(), SHORT), max_size=6))
def test_cursor_finds_the_longest_suffix_of_what_it_read(turns: list[tuple[bool, list[int]]]) -> None:
    """Text and reading grow in turns; what was read before the text grew may match more by then, and need not."""
    automaton = SuffixAutomaton()
    cursor = Cursor(automaton)
    text: list[int] = []
    read: list[int] = []
    grown = False
    for grows, tokens in turns:
        if grows:
            text += tokens
            automaton.extend(tokens)
            grown = grown or bool(read)
            cursor.settle()
        else:
            read += tokens
            cursor.read(tokens)
        longest = longest_known_suffix(text, read)
        assert cursor.length <= longest if grown else cursor.length == longest
        part = read[len(read) - cursor.length :]
        assert find(automaton, part) == cursor.state
