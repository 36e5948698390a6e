"""Calls as each family writes them, however they come in pieces; and what conversations with calls look like."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from templates import TEMPLATES

from paceline.server.fields import JsonObject
from paceline.server.reply_parts import CallArguments, CallBegin, Part, Words, joined
from paceline.server.reply_reader import ReplyReader
from paceline.server.text_decoder import Shown, without_shown
from paceline.server.tool_formats import ToolFormat, tool_format_of
from paceline.server.tool_formats.described import Described
from paceline.server.tool_formats.hermes import Hermes
from paceline.server.tool_formats.llama import Llama
from paceline.server.tool_formats.mistral import Mistral
from paceline.server.tool_formats.qwen_coder import QwenCoder
from paceline.server.tool_use import Tool

SHOWN = Shown({"[TOOL_CALLS]": 5, "[ARGS]": 6, "[CALL_ID]": 7, "<|python_tag|>": 8})
HERMES, LLAMA, MISTRAL, CODER = Hermes(SHOWN), Llama(SHOWN), Mistral(SHOWN), QwenCoder(SHOWN)
CALLS, ARGS, CALL_ID, PYTHON = (SHOWN.spelling(name) for name in ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", LLAMA.mark))
TOOLS = (
    Tool(
        name="weather", schema={"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "number"}}}
    ),
    Tool(name="time"),
)

Call = tuple[str, str]  # name and arguments, as they are written
WARM = ("weather", '{"city": "Žďár", "n": [1, {"x": "}"}]}')
NOW = ("time", "{}")

# format, reply (@ for the arguments of WARM), words, calls
_REPLIES: Mapping[str, tuple[ToolFormat, str, str, Sequence[Call]]] = {
    "hermes": (HERMES, '<tool_call>\n{"name": "weather", "arguments": @}\n</tool_call>', "", [WARM]),
    "hermes words": (HERMES, 'Let me see.\n<tool_call>{"name":"time"}</tool_call>', "Let me see.\n", [NOW]),
    "hermes parallel": (
        HERMES,
        '<tool_call>\n{"arguments": @, "name": "weather"}\n</tool_call>\n<tool_call>\n{"name": "time"}\n</tool_call>',
        "",
        [WARM, NOW],
    ),
    "hermes list": (
        HERMES,
        '<tool_call>[{"name": "weather", "arguments": @}, {"name": "time", "arguments": {}}]</tool_call>',
        "",
        [WARM, NOW],
    ),
    "hermes string": (
        HERMES,
        '<tool_call>\n{"name": "weather", "arguments": ' + json.dumps(WARM[1]) + "}\n</tool_call>",
        "",
        [WARM],
    ),
    "hermes null": (HERMES, '<tool_call>{"name": "time", "arguments": null}</tool_call> Done.', "Done.", [NOW]),
    "hermes closing tag in a string": (
        HERMES,
        '<tool_call>{"name": "weather", "arguments": {"city": "\\"</tool_call>"}}</tool_call>',
        "",
        [("weather", '{"city": "\\"</tool_call>"}')],
    ),
    "hermes end": (HERMES, '<tool_call>{"name": "time", "arguments": {}}', "", [NOW]),
    "llama": (LLAMA, '{"name": "weather", "parameters": @}', "", [WARM]),
    "llama parallel": (
        LLAMA,
        '\n{"type": "function", "name": "weather", "parameters": @}; {"name": "time", "parameters": {}}',
        "",
        [WARM, NOW],
    ),
    "llama tag": (LLAMA, f'Wait. {PYTHON}{{"name": "time", "parameters": {{}}}}', "Wait. ", [NOW]),
    "mistral": (
        MISTRAL,
        f'{CALLS} [{{"name": "weather", "arguments": @, "id": "abcdefghi"}}, {{"name": "time", "arguments": {{}}}}]',
        "",
        [WARM, NOW],
    ),
    "mistral newer": (
        MISTRAL,
        f"Yes.{CALLS}weather{ARGS}{WARM[1]}{CALLS}time{CALL_ID}a1{ARGS}{{}}",
        "Yes.",
        [WARM, NOW],
    ),
    "mistral bare name": (MISTRAL, f"{CALLS}time{{}}", "", [NOW]),
    "coder": (
        CODER,
        (
            "Ok.\n<tool_call>\n<function=weather>\n<parameter=city>\nŽďár\n<b>\n</parameter>\n<parameter=n>\n5\n"
            "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=time>\n</function>\n</tool_call>"
        ),
        "Ok.\n",
        [("weather", '{"city": "Žďár\\n<b>", "n": 5}'), NOW],
    ),
    # What only looks like a call is words.
    "not json": (HERMES, "<tool_call>oops</tool_call>", "<tool_call>oops</tool_call>", []),
    "no name": (HERMES, '<tool_call>{"arguments": {}}</tool_call>', '<tool_call>{"arguments": {}}</tool_call>', []),
    "odd name": (HERMES, '<tool_call>{"name": 5}', '<tool_call>{"name": 5}', []),
    "broken name": (HERMES, '<tool_call>{"name": "\\x"}', '<tool_call>{"name": "\\x"}', []),
    "broken off": (HERMES, 'a <tool_call>\n{"na', 'a <tool_call>\n{"na', []),
    "half a tag": (HERMES, "a <tool_ca", "a <tool_ca", []),
    "call behind a broken one": (
        HERMES,
        '<tool_call><tool_call>{"name": "time"}</tool_call>',
        "<tool_call>",
        [NOW],
    ),
    "another object": (LLAMA, '{"name": "Bob", "parameters": {}}', '{"name": "Bob", "parameters": {}}', []),
    "another field": (LLAMA, '{"city": "Brno"}', '{"city": "Brno"}', []),
    "an object in words": (
        LLAMA,
        'So: {"name": "time", "parameters": {}}',
        'So: {"name": "time", "parameters": {}}',
        [],
    ),
    "python": (LLAMA, f"{PYTHON}print(1)", "print(1)", []),
    "mark alone": (MISTRAL, f"{CALLS}!", "!", []),
    "typed mark": (MISTRAL, '[TOOL_CALLS] [{"name": "time"}]', '[TOOL_CALLS] [{"name": "time"}]', []),
}


REPLIES = {case: (form, text.replace("@", WARM[1]), *rest) for case, (form, text, *rest) in _REPLIES.items()}


def reader(format_: ToolFormat, *, parallel: bool = True) -> ReplyReader:
    return ReplyReader(tags=None, opened=False, format=format_, tools=TOOLS, parallel=parallel)


def read(format_: ToolFormat, pieces: Sequence[str], *, parallel: bool = True) -> tuple[list[Part], bool]:
    reading = reader(format_, parallel=parallel)
    parts = [part for piece in pieces for part in reading.push(piece)]
    return joined([*parts, *reading.close()]), reading.called


def words(parts: Sequence[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Words))


def calls(parts: Sequence[Part]) -> list[Call]:
    begun = [part for part in parts if isinstance(part, CallBegin)]
    assert [part.index for part in begun] == list(range(len(begun)))
    texts = [
        "".join(part.text for part in parts if isinstance(part, CallArguments) and part.index == i)
        for i in range(len(begun))
    ]
    return [(part.name, text) for part, text in zip(begun, texts, strict=True)]


@pytest.mark.parametrize("case", REPLIES)
def test_replies_of_each_family_in_any_pieces(case: str) -> None:
    format_, text, said, called = REPLIES[case]
    whole, any_called = read(format_, [text])
    assert (words(whole), calls(whole), any_called) == (said, list(called), bool(called))
    for cut in range(1, len(text)):
        assert read(format_, [text[:cut], text[cut:]]) == (whole, any_called)
    rng = random.Random(case)
    for _ in range(20):
        bounds = [0, *sorted(rng.choices(range(len(text) + 1), k=8)), len(text)]
        assert read(format_, [text[start:end] for start, end in pairwise(bounds)]) == (whole, any_called)
    assert read(format_, list(text)) == (whole, any_called)


def test_a_call_is_told_while_it_is_written() -> None:
    reading = reader(HERMES)
    told = [
        (piece, reading.push(piece)) for piece in ("<tool_", "call>", '{"name": "weat', 'her"', ', "arguments": {"ci')
    ]
    assert [bool(parts) for _, parts in told] == [False, False, False, True, True]
    assert isinstance(told[3][1][0], CallBegin)
    assert told[4][1] == [CallArguments(0, '{"ci')]
    assert not reading.called
    assert reading.push('ty": 1}') == [CallArguments(0, 'ty": 1}')]
    assert reading.push("}") == []
    assert reading.called


@pytest.mark.parametrize("case", [case for case, (_, _, _, called) in REPLIES.items() if called])
def test_a_reply_cut_off_anywhere_keeps_what_was_told(case: str) -> None:
    format_, text, _, called = REPLIES[case]
    names, arguments = zip(*called, strict=True)
    for end in range(len(text)):
        parts, any_called = read(format_, [text[:end]])
        told = calls(parts)
        if not told:
            assert not any_called
            continue
        assert [name for name, _ in told] == list(names[: len(told)])
        assert all(arguments[i].startswith(text_) for i, (_, text_) in enumerate(told))
        assert any_called == (len(told) > 1) or told[0] == called[0]


@pytest.mark.parametrize("case", [case for case, (_, _, _, called) in REPLIES.items() if len(called) > 1])
def test_one_call_is_enough_where_only_one_is_wanted(case: str) -> None:
    format_, text, _, called = REPLIES[case]
    for pieces in ([text, " more"], [*text, " more"]):
        parts, any_called = read(format_, pieces, parallel=False)
        assert (calls(parts), any_called) == ([called[0]], True)
        assert isinstance(parts[-1], CallArguments)


_SHREDS = (
    *(
        "<tool_call>",
        "</tool_call>",
        "{",
        "}",
        '"name"',
        '"arguments"',
        '"parameters"',
        ": ",
        ", ",
        '"',
        "\\",
        "[",
        "]",
    ),
    *("null", '"time"', "time", "weather", " ", "\n", "<", ">", ";", "<function=", "<parameter=", "</parameter>", "é"),
    *("</function>", CALLS, ARGS, CALL_ID, PYTHON),
)


@given(
    shreds=st.lists(st.sampled_from(_SHREDS), max_size=30),
    format_=st.sampled_from([HERMES, LLAMA, MISTRAL, CODER]),
    cuts=st.lists(st.integers(0, 100), max_size=5),
)
def test_no_text_is_too_odd(shreds: list[str], format_: ToolFormat, cuts: list[int]) -> None:
    text = "".join(shreds)
    whole, called = read(format_, [text])
    bounds = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    assert read(format_, [text[start:end] for start, end in pairwise(bounds)]) == (whole, called)
    if not calls(whole):
        assert words(whole) == without_shown(text)
    assert without_shown(repr(whole)) == repr(whole)


# --- conversations ---


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("qwen3", Hermes),
        ("llama3", Llama),
        ("mistral_tools", Mistral),
        ("qwen3_coder", QwenCoder),
        ("smollm2", Described),
        ("mistral", Described),
    ],
)
def test_the_format_is_told_from_the_template(template: str, expected: type[ToolFormat]) -> None:
    assert type(tool_format_of(TEMPLATES[template], Shown({}))) is expected


CONVERSATION: list[JsonObject] = [
    {"role": "user", "content": "Weather?"},
    {
        "role": "assistant",
        "content": "One moment.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Žďár"}}},
            {"id": "abcDEF789", "type": "function", "function": {"name": "time", "arguments": '{"cut'}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
    {"role": "tool", "tool_call_id": "abcDEF789", "content": [{"type": "text", "text": "noon"}]},
]


def test_described_tools_calls_and_results_are_text() -> None:
    described = Described(SHOWN)
    tools = [tool.body() for tool in TOOLS]
    system, user, assistant, results = described.messages(CONVERSATION, tools)
    assert [m["role"] for m in (system, user, assistant, results)] == ["system", "user", "assistant", "user"]
    assert all(json.dumps(tool, ensure_ascii=False) in system["content"] for tool in tools)
    assert results["content"] == ("<tool_response>\nsunny\n</tool_response>\n<tool_response>\nnoon\n</tool_response>")
    parts, _ = read(described, [assistant["content"]])
    assert words(parts).startswith("One moment.\n")
    assert calls(parts) == [("weather", '{"city": "Žďár"}'), ("time", '{"cut}\n</tool_call>')]
    brief = [{"role": "system", "content": "Be brief."}, *CONVERSATION]
    merged = described.messages(brief, tools)[0]["content"]
    assert merged == f"Be brief.\n\n{system['content']}"
    assert described.messages(brief, [])[0] == brief[0]


def test_ids_that_a_mistral_template_refuses_are_made_fitting() -> None:
    _, assistant, first, second = MISTRAL.messages(CONVERSATION, [])
    ids = [call["id"] for call in assistant["tool_calls"]]
    assert [first["tool_call_id"], second["tool_call_id"]] == ids
    assert all(len(id_) == 9 and id_.isalnum() for id_ in ids)
    assert ids[1] == "abcDEF789"
    begun = [part for part in read(*REPLIES["mistral"][:2])[0] if isinstance(part, CallBegin)]
    assert all(len(part.id) == 9 and part.id.isalnum() for part in begun)
