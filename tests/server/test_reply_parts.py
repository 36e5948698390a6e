from __future__ import annotations

from part_readers import EveryKind

from paceline.server.reply_parts import CallArguments, CallBegin, Part, PlainReader, Thought, Words, joined


def test_neighbours_that_continue_each_other_become_one() -> None:
    begins: list[Part] = [CallBegin(0, "a", "f"), CallBegin(1, "b", "f")]
    parts: list[Part] = [Words("a"), Words("b"), Thought("c"), Words("d"), *begins]
    parts += [CallArguments(1, "{"), CallArguments(1, "}"), CallArguments(2, "e")]
    assert joined(parts) == [
        *(Words("ab"), Thought("c"), Words("d")),
        *begins,
        *(CallArguments(1, "{}"), CallArguments(2, "e")),
    ]
    assert joined([]) == []


def test_how_a_text_is_cut_is_not_seen_in_what_is_merged() -> None:
    text = "every kind of part, and then once more" * 2
    whole = joined(EveryKind().push(text))
    assert len(whole) > 8
    for size in (1, 2, 7):
        reader = EveryKind()
        parts = [part for i in range(0, len(text), size) for part in reader.push(text[i : i + size])]
        assert joined(joined(parts[:9]) + joined(parts[9:])) == whole


def test_all_is_words_to_the_plain_reader() -> None:
    reader = PlainReader()
    assert (reader.push("<think>"), reader.push(""), reader.close()) == ([Words("<think>")], [], [])
    assert not reader.called
