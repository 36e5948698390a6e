from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.server.origins import Origins, between
from paceline.server.reply_parts import CallArguments, CallBegin, Part, Span, Thought, Words, joined, spans_of
from paceline.server.reply_reader import ReplyReader
from paceline.server.text_decoder import Shown
from paceline.server.thinking import Tags
from paceline.server.tool_formats.hermes import Hermes

CALL = CallBegin(0, "id", "f")


def test_a_part_of_spans_has_no_empty_ones() -> None:
    spans = [(2, "a"), (1, ""), (3, "b")]
    assert between(spans, 0, 6) == ((2, "a"), (1, ""), (3, "b"))
    assert between(spans, 1, 4) == ((1, "a"), (1, ""), (1, "b"))
    assert between(spans, 2, 3) == ((1, ""),)
    assert between(spans, 3, 3) == ()
    assert between([(0, "a"), (1, "b")], 0, 1) == ((1, "b"),)


@pytest.mark.parametrize(
    ("pushed", "parts", "expected"),
    [
        ([("ab", "x"), ("c", "")], [Words("abc")], [((2, "x"), (1, ""))]),
        ([("ab", "x"), ("c<", "y")], [Words("abc")], [((2, "x"), (1, "y"))]),  # the rest is held back
        ([("</think>", ""), ("\n", "x"), ("So", "y")], [Words("So")], [((2, "y"),)]),
        ([("hm</think>So", "x")], [Thought("hm"), Words("So")], [None, ((2, "x"),)]),
        ([("a<tool_call>", "x")], [Words("a"), CALL], [((1, "x"),), None]),
        ([("ab", "x")], [Words("ac")], [None]),
        ([("{}", "x")], [CallArguments(0, "{}")], [None]),
    ],
)
def test_words_are_told_with_what_they_are_made_of(
    pushed: list[tuple[str, str]], parts: list[Part], expected: list[tuple[Span, ...] | None]
) -> None:
    origins = Origins()
    for text, source in pushed:
        origins.push(text, source)
    claimed = origins.claimed(parts)
    assert claimed == parts
    assert list(map(spans_of, claimed)) == expected


def test_what_was_held_back_is_told_with_the_next_words() -> None:
    origins = Origins()
    origins.push("a<", "x")
    assert spans_of(origins.claimed([Words("a")])[0]) == ((1, "x"),)
    assert origins.claimed([]) == []
    origins.push("b", "y")
    assert spans_of(origins.claimed([Words("<b")])[0]) == ((1, "x"), (1, "y"))


def test_a_token_that_is_held_back_costs_the_same_however_many_were_before() -> None:
    origins = Origins()
    for _ in range(20_000):
        origins.push("ab", "x")
        origins.claimed([])
    peaks = []
    tracemalloc.start()
    for _ in range(5):  # a list makes room for many at once, now and then
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        origins.push("ab", "x")
        origins.claimed([])
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    assert min(peaks) < 1000


def test_without_a_trace_nothing_is_told() -> None:
    assert spans_of(Origins().claimed([Words("a")])[0]) is None


MARKS = [
    "<think>",
    "</think>",
    "<tool_call>",
    '{"name": "f", "arguments": {',
    "}}",
    "</tool_call>",
    "<",
    "hm",
    " ",
    "é",
]


@given(st.lists(st.sampled_from(MARKS), max_size=12), st.booleans())
def test_spans_fit_their_words_whatever_a_reader_makes_of_the_text(texts: list[str], opened: bool) -> None:
    reader = ReplyReader(tags=Tags("<think>", "</think>", "<think>"), opened=opened, format=Hermes(Shown({})))
    origins = Origins()
    parts: list[Part] = []
    for number, text in enumerate(texts):
        origins.push(text, str(number))
        parts += origins.claimed(reader.push(text))
    parts += origins.claimed(reader.close())
    for part in joined(parts):
        if (spans := spans_of(part)) is not None:
            assert isinstance(part, Words)
            assert sum(size for size, _ in spans) == len(part.text)
            numbers = [int(source) for _, source in spans]
            assert numbers == sorted(numbers)
