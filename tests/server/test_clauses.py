from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.server.clauses import Clause, Clauses


def clauses(*pieces: str) -> list[Clause]:
    reader = Clauses()
    return [clause for piece in pieces for clause in reader.push(piece)] + reader.close()


def certain(text: str) -> list[str]:
    """What is known before the text has ended."""
    return [clause.text for clause in Clauses().push(text)]


@pytest.mark.parametrize(
    "marked",
    [
        "Hello there.| How are you?| Fine!",
        "Well,| I think so;| or:| not.",
        "It is 3.14 or 1,000 at 10:30.| See a.b/c?d=e!f for more.",
        "Dr. Lee met Mr. Hale,| etc. and left.| Mrs. Ek,| too.",
        "Apples,| pears etc.| They are fruit.",
        "Use tools,| e.g. a saw,| i.e., anything.",
        "At 5 p.m.| The end.",
        "In the U.S. army.",
        "J. S. Bach wrote it.| He did.",
        "That was in 2020.| Then came 2021.",
        "am 3. Mai",
        "1. First|\n2. Second|\nlast",
        "Wait...| what?!| No…| yes.",
        'He said "Stop."| Then "Go!"| and (done.)| Right?',
        "**Bold.**| _Next._| `x.`| end",
        "one —| two—|three",
        "你好！|今天天气很好，|我们去公园吧。|好的？！|走。",
        "他说：|“走吧。”|然后走了。",
        "「はい。」|と言った。|そう",
        '他说：|"好。"|然后',
        "A title|\n\nText of it.| More",
        "你好。|Hello.| Ça va?| Да.| नमस्ते।| مرحبا؟| ok",
        "no end at all",
        "5!=6 and a?b:c is code.",
        "So be it.|  Next",
    ],
)
def test_boundaries(marked: str) -> None:
    expected = marked.split("|")
    text = "".join(expected)
    found = clauses(text)
    assert [clause.text for clause in found] == expected
    assert [text[clause.start : clause.end] for clause in found] == expected


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("你好。", ["你好。"]),
        ("你好，", ["你好，"]),
        ("你好！", []),  # another may follow
        ("你好！我", ["你好！"]),
        ("“你好。", []),  # the quote may close
        ("“你好。”", []),
        ("“你好。”我", ["“你好。”"]),
        ("Hello.", []),  # a number, an address or a quote may go on
        ("Hello. ", ["Hello."]),
        ("Hello,", []),
        ("Hello, ", ["Hello,"]),
        ("a line\n", ["a line"]),
        ("bread etc. ", []),
        ("bread etc. A", ["bread etc."]),
        ("bread etc. a", []),
        ("bread etc.\n", ["bread etc."]),
        ("“open\n你好。", ["“open", "\n你好。"]),  # what is never closed ends with its line
        ("...", []),
    ],
)
def test_as_soon_as_it_is_certain(text: str, known: list[str]) -> None:
    assert certain(text) == known


LETTERS = st.text(st.sampled_from(list("ab Z5.,!?…\n\"'”“。，！「」—:;1etcdr")), max_size=60)


@given(LETTERS, st.lists(st.integers(0, 60), max_size=8))
def test_pieces_change_nothing(text: str, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    assert clauses(*pieces) == clauses(text)


@given(LETTERS)
def test_clauses_tile_the_text(text: str) -> None:
    found = clauses(text)
    at = 0
    for clause in found:
        assert clause.start == at < clause.end
        assert clause.text == text[at : clause.end]
        assert any(letter.isalnum() for letter in clause.text)
        at = clause.end
    assert not any(letter.isalnum() for letter in text[at:])


@given(LETTERS, LETTERS)
def test_nothing_is_taken_back(text: str, more: str) -> None:
    whole = certain(text + more)
    assert whole[: len(certain(text))] == certain(text)
