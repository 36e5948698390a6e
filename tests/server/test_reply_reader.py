"""Thoughts and words told apart, whatever the pieces; how readers of a reply are made."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.server.reply_parts import CallBegin, Part, PlainReader, Thought, Words, joined
from paceline.server.reply_reader import ReplyReader, readers
from paceline.server.text_decoder import Shown, without_shown
from paceline.server.thinking import Tags, tags_of
from paceline.server.tool_formats.hermes import Hermes
from paceline.server.tool_use import NO_TOOLS, Tool, ToolUse

SHOWN = Shown({"[THINK]": 3, "[/THINK]": 4})
THINK = Tags("<think>", "</think>", "<think>")
MAGISTRAL = tags_of("{{ '[/THINK]' }}", SHOWN)
HERMES = Hermes(SHOWN)


def read(pieces: Sequence[str], *, opened: bool = False, tags: Tags | None = THINK) -> list[Part]:
    reader = ReplyReader(tags=tags, opened=opened, format=HERMES)
    parts = [part for piece in pieces for part in reader.push(piece)]
    return joined([*parts, *reader.close()])


@pytest.mark.parametrize(
    ("text", "opened", "parts"),
    [
        ("<think>\nHm.\n</think>\n\nYes.", False, [Thought("Hm."), Words("Yes.")]),
        ("\n<think>Hm.\n\nWell </thin k</think>Yes.\n", False, [Thought("Hm.\n\nWell </thin k"), Words("Yes.\n")]),
        ("<think>\n\n</think>\n\nYes.", False, [Words("Yes.")]),
        ("Hm.\n</think>\nYes.", True, [Thought("Hm."), Words("Yes.")]),
        ("<think>\nHm.\n</think>\nYes.", True, [Thought("Hm."), Words("Yes.")]),
        ("<thin", True, [Thought("<thin")]),
        (" <think> Hm. ", False, [Thought("Hm. ")]),
        ("<think>Hm.</thi", False, [Thought("Hm.</thi")]),
        ("Yes.", False, [Words("Yes.")]),
        (" <thinker>", False, [Words(" <thinker>")]),
        ("The tag <think> opens </think> a thought.", False, [Words("The tag <think> opens </think> a thought.")]),
        ("<think>a</think>b<think>c</think>", False, [Thought("a"), Words("b<think>c</think>")]),
        ("<think><tool_call>{}</think><tool_call>", False, [Thought("<tool_call>{}"), Words("<tool_call>")]),
        ("", True, []),
        (" ", True, []),
    ],
)
def test_thoughts_come_first_and_lose_their_tags(text: str, opened: bool, parts: list[Part]) -> None:
    assert read([text], opened=opened) == parts
    assert read(list(text), opened=opened) == parts
    for cut in range(len(text)):
        assert read([text[:cut], text[cut:]], opened=opened) == parts


def test_a_call_behind_a_thought() -> None:
    thought, call, *_ = read(['<think>\nhm\n</think>\n\n<tool_call>\n{"name": "f"}\n</tool_call>'])
    assert thought == Thought("hm")
    assert isinstance(call, CallBegin)


def test_a_thought_is_told_while_it_is_written() -> None:
    reader = ReplyReader(tags=THINK, opened=False, format=None)
    steps = [(reader.thinking, reader.push(piece)) for piece in ("<think>", "\nI ", "see</", "think>", "\n", "So")]
    assert [thinking for thinking, _ in steps] == [False, True, True, True, False, False]
    assert [parts for _, parts in steps] == [[], [Thought("I")], [Thought(" see")], [], [], [Words("So")]]


def test_tags_that_are_special_tokens_are_never_typed() -> None:
    assert MAGISTRAL is not None
    assert read([f"{MAGISTRAL.open}hm[/THINK]{MAGISTRAL.close}So"], tags=MAGISTRAL) == [
        Thought("hm[/THINK]"),
        Words("So"),
    ]
    assert read(["[THINK]hm"], tags=MAGISTRAL) == [Words("[THINK]hm")]
    assert read([f"a{MAGISTRAL.close}b"], tags=MAGISTRAL) == [Words("ab")]


@given(
    shreds=st.lists(st.sampled_from(["<think>", "</think>", "</thi", "<", "\n", " ", "a", "\ud800", "\ud801"])),
    opened=st.booleans(),
    tags=st.sampled_from([THINK, MAGISTRAL, None]),
    cuts=st.lists(st.integers(0, 100), max_size=5),
)
def test_nothing_but_tags_and_space_is_lost(
    shreds: list[str], opened: bool, tags: Tags | None, cuts: list[int]
) -> None:
    text = "".join(shreds)
    whole = read([text], opened=opened, tags=tags)
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    assert read([text[start:end] for start, end in pairwise(bounds)], opened=opened, tags=tags) == whole
    told = "".join(part.text for part in whole if isinstance(part, Words | Thought))
    assert without_shown(told) == told
    expected = without_shown(text)
    if any(isinstance(part, Thought) for part in whole) or opened:
        assert _letters(told) in {
            _letters(expected),
            _letters(expected.replace("<think>", "", 1)),
            _letters(expected.replace("</think>", "", 1)),
            _letters(expected.replace("<think>", "", 1).replace("</think>", "", 1)),
        }
    elif tags is None:
        assert told == expected


def _letters(text: str) -> str:
    return "".join(text.split())


# --- readers of a service ---


def test_a_reader_is_plain_where_nothing_is_to_be_found() -> None:
    tools = ToolUse(tools=(Tool(name="f"),), choice="none")
    for use in (NO_TOOLS, tools):
        assert isinstance(readers(None, HERMES, use, prompt=[1], opened=False)(0), PlainReader)


def test_calls_are_read_only_where_tools_were_offered() -> None:
    text = '<tool_call>{"name": "f"}</tool_call>'
    reader = readers(THINK, HERMES, NO_TOOLS, prompt=[1], opened=False)(0)
    assert joined([*reader.push(text), *reader.close()]) == [Words(text)]
    assert not reader.called


def test_ids_follow_from_prompt_and_seed() -> None:
    use = ToolUse(tools=(Tool(name="f"),))

    def ids(prompt: list[int], seed: int) -> list[str]:
        reader = readers(None, HERMES, use, prompt=prompt, opened=False)(seed)
        parts = reader.push('<tool_call>{"name": "f"}</tool_call>' * 2)
        return [part.id for part in parts if isinstance(part, CallBegin)]

    assert ids([1, 2], 3) == ids([1, 2], 3)
    assert len({*ids([1, 2], 3), *ids([1, 2], 4), *ids([1, 3], 3)}) == 6
