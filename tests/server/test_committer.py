"""Tokens to text, stops, usage and figures: each way known servers got them wrong."""

from __future__ import annotations

import pytest
from token_replies import BYTES, EOS, TOKENIZER, committer, delta, letters, logprobs
from vocabularies import sentencepiece_tokenizer

from paceline.engine.request import Finish
from paceline.server.committer import Committer, Piece, PromptCounts, Usage
from paceline.server.reply_parts import CallArguments, CallBegin, Thought, Words, joined
from paceline.server.reply_reader import ReplyReader
from paceline.server.spec_figures import SpecFigures
from paceline.server.text_decoder import Shown
from paceline.server.thinking import Tags
from paceline.server.tool_formats.hermes import Hermes
from paceline.server.tool_formats.llama import Llama

SENTENCEPIECE = sentencepiece_tokenizer()

# --- text assembly ---


def test_a_split_character_is_never_replaced_mid_stream() -> None:
    reply = committer()
    pieces = [reply.push(delta([token])) for token in letters("ď😀漢")]
    assert [piece.text for piece in pieces if piece.text] == ["ď", "😀", "漢"]
    assert [len(piece.tokens) for piece in pieces] == [1] * len(pieces)


@pytest.mark.parametrize("finish", ["length", "stop", "abort", "error"])
def test_a_really_cut_character_is_flushed_with_the_finish(finish: Finish) -> None:
    reply = committer()
    tokens = letters("a😀")[:-1]
    assert reply.push(delta(tokens)).text == "a"
    piece = reply.push(delta([EOS] if finish == "stop" else [], finish))
    assert piece.text == "\ufffd"
    assert reply.text == "a\ufffd" == TOKENIZER.decode(tokens)


def test_the_leading_space_of_a_sentencepiece_reply_is_the_tokenizers() -> None:
    ids = SENTENCEPIECE.encode("the cat is here")
    reply = committer(tokenizer=SENTENCEPIECE)
    pieces = [reply.push(delta([id_])).text for id_ in ids]
    assert "".join(pieces) == SENTENCEPIECE.decode(ids) == "the cat is here"


def test_spaces_before_punctuation_are_not_cleaned_up() -> None:
    text = "Hello , world ! I 'm n't ."
    reply = committer()
    assert "".join(reply.push(delta([id_])).text for id_ in TOKENIZER.encode(text)) == text


# --- stop strings ---


def test_a_stop_string_inside_a_token_cuts_inside_it() -> None:
    marker = TOKENIZER.encode("</think>")
    reply = committer(["thi"])
    piece = reply.push(delta([*marker, *letters("rest")]))
    assert (piece.text, piece.tokens, piece.finish, piece.cut) == ("</", tuple(marker), "stop", 1)


@pytest.mark.parametrize("together", [True, False])
def test_a_stop_string_over_tokens_and_deltas_is_found(together: bool) -> None:
    reply = committer(["END"])
    tokens = letters("one EEND two")
    deltas = [delta(tokens)] if together else [delta([token]) for token in tokens]
    pieces = [reply.push(each) for each in deltas]
    assert "".join(piece.text for piece in pieces) == reply.text == "one E"
    assert [piece.finish for piece in pieces if piece.finish] == ["stop"]
    assert [token for piece in pieces for token in piece.tokens] == letters("one EEND")
    assert reply.usage == Usage(prompt_tokens=7, completion_tokens=8, cached_tokens=0)
    assert [piece.cut for piece in pieces if piece.finish] == [8]


def test_a_partial_match_is_held_back_and_released() -> None:
    reply = committer(["STOP"])
    pieces = [reply.push(delta([token])) for token in letters("xSTxSTO")]
    assert [piece.text for piece in pieces] == ["x", "", "", "STx", "", "", ""]
    last = reply.push(delta([], "length"))
    assert (last.text, last.finish) == ("STO", "length")
    assert reply.text == "xSTxSTO"


def test_a_partial_match_is_flushed_at_eos_and_on_close() -> None:
    for end in (lambda reply: reply.push(delta([EOS], "stop")), Committer.close):
        reply = committer(["STOP"])
        reply.push(delta(letters("a ST")))
        assert end(reply).text == "ST"
        assert reply.text == "a ST"


def test_the_earliest_stop_string_wins_whatever_the_order() -> None:
    for stops in (["two", "one"], ["one", "two"]):
        reply = committer(stops)
        assert reply.push(delta(letters("a one two"))).text == "a "
    assert committer(["c", "bc"]).push(delta(letters("abc"))).text == "a"


def test_a_stop_string_with_split_characters() -> None:
    reply = committer(["😀"])
    pieces = [reply.push(delta([token])) for token in letters("a😀b")]
    assert [piece.text for piece in pieces] == ["a", "", "", "", "", ""]
    assert [piece.finish for piece in pieces] == [None] * 4 + ["stop", None]
    assert reply.usage.completion_tokens == 5


def test_holding_back_never_splits_a_marker_that_is_one_token() -> None:
    marker = TOKENIZER.encode("</think>")
    assert len(marker) == 1
    for stop in (">\n\nUser", "think>!", "</thinker>"):
        reply = committer([stop])
        texts = [reply.push(delta([token])).text for token in [*letters("a"), *marker, *letters("b!")]]
        assert [text for text in texts if text] in (["a", "</think>b", "!"], ["a", "</think>", "b", "!"])


def test_a_stop_string_is_found_even_where_the_engine_reached_the_length() -> None:
    reply = committer(["END"])
    piece = reply.push(delta(letters("a END"), "length"))
    assert (piece.finish, piece.text, piece.cut) == ("stop", "a ", 5)


def test_a_match_completed_by_the_flushed_end_counts() -> None:
    reply = committer(["a\ufffd"])
    reply.push(delta(letters("xa😀")[:-1]))
    piece = reply.push(delta([], "length"))
    assert (reply.text, piece.finish, piece.cut) == ("x", "stop", 5)


# --- cutting inside an accepted run ---


def test_a_stop_id_in_the_middle_of_a_run_ends_the_reply_there() -> None:
    ten, eleven, twenty, twenty_one = letters("abcd")
    reply = committer()
    run = [ten, eleven, EOS, twenty, twenty_one]
    piece = reply.push(delta(run, "length", drafted=4, accepted=4, logprobs=logprobs(run)))
    assert piece.finish == "stop"
    assert piece.tokens == (ten, eleven, EOS)
    assert piece.logprobs == logprobs(run)[:3]
    assert piece.cut == 3
    assert reply.usage.completion_tokens == 3
    assert reply.text == "ab"


def test_a_stop_id_the_engine_cut_at_counts_but_is_no_text() -> None:
    reply = committer(stop_id=BYTES[ord("!")])
    piece = reply.push(delta(letters("hi!"), "stop"))
    assert (piece.text, piece.finish, piece.cut, len(piece.tokens)) == ("hi", "stop", None, 3)
    assert reply.usage.completion_tokens == 3


def test_a_stop_early_in_a_long_run_ends_everything_there() -> None:
    run = letters("a.bcdefgh")
    reply = committer(["."])
    piece = reply.push(delta(run, drafted=12, accepted=8, logprobs=logprobs(run), cached_tokens=5))
    assert piece == Piece(
        text="a",
        parts=(Words("a"),),
        tokens=tuple(run[:2]),
        logprobs=logprobs(run)[:2],
        finish="stop",
        cut=2,
        drafted=12,
        accepted=2,
        prompt=PromptCounts(7, 5),
    )
    assert reply.usage == Usage(7, 2, 5)
    assert (reply.figures.drafted, reply.figures.accepted) == (12, 2)


def test_the_first_token_tells_what_the_prompt_took() -> None:
    """Not before it, since a prompt may be read in several steps, and never again."""
    reply = committer([])
    told = [reply.push(delta(run, cached_tokens=5)).prompt for run in ([], letters("a"), letters("bc"))]
    assert told == [None, (7, 5), None]
    assert reply.close().prompt is None


def test_cut_counts_the_whole_reply_not_the_delta() -> None:
    reply = committer(["."])
    reply.push(delta(letters("abc")))
    assert reply.push(delta(letters("d.e"))).cut == 5


def test_nothing_follows_the_finish() -> None:
    for last in (delta(letters("a.b")), delta(letters("ab"), "length"), delta([EOS], "stop")):
        reply = committer(["."])
        assert reply.push(last).finish is not None
        before = (reply.text, reply.usage, reply.figures.body())
        late = delta(letters("late"), "stop", drafted=3, accepted=3, logprobs=logprobs(letters("late")))
        assert reply.push(late) == Piece()
        assert reply.close() == Piece()
        assert (reply.text, reply.usage, reply.figures.body()) == before


def test_an_error_is_passed_on() -> None:
    piece = committer().push(delta([], "error", error="out of memory"))
    assert (piece.finish, piece.error) == ("error", "out of memory")


def test_closing_a_running_reply_is_an_abort() -> None:
    reply = committer()
    reply.push(delta(letters("a")))
    piece = reply.close()
    assert (piece.finish, piece.cut, piece.tokens) == ("abort", None, ())


def test_guesses_that_were_cut_away_count_as_drafted_alone() -> None:
    reply = committer(["c"])
    reply.push(delta(letters("a"), cached_tokens=4))  # the first token: nothing was drafted
    reply.push(delta(letters("bcd"), drafted=4, accepted=3))
    assert reply.figures == SpecFigures(drafted=4, accepted=2, histogram=[0, 0, 1, 0, 0])
    assert reply.usage == Usage(7, 3, 4)


# --- what a reply is made of ---

MARK = TOKENIZER.special_tokens["<|im_start|>"]
SHOWN = Shown(TOKENIZER.special_tokens)
THINK, WEATHER = Tags("<think>", "</think>", "<think>"), '{"name": "weather", "arguments": {"a": 1}}'


def reading(*, parallel: bool = True, opened: bool = False) -> ReplyReader:
    return ReplyReader(tags=THINK, opened=opened, format=Hermes(SHOWN), parallel=parallel)


def test_thoughts_are_counted_in_tokens_up_to_the_closing_tag() -> None:
    thought = [*TOKENIZER.encode("<think>"), *letters("hm"), *TOKENIZER.encode("</think>")]
    for opened, tokens in ((False, thought), (True, thought[1:])):
        reply = committer(reader=reading(opened=opened))
        piece = reply.push(delta([*tokens, *letters("So."), EOS], "stop"))
        assert piece.parts == (Thought("hm"), Words("So."))
        assert reply.usage == Usage(7, len(tokens) + 4, 0, reasoning_tokens=3)


def test_a_thought_that_never_ends_is_all_the_reply_has() -> None:
    reply = committer(reader=reading(opened=True))
    assert reply.push(delta([*letters("hm"), EOS], "stop")).parts == (Thought("hm"),)
    assert reply.usage.reasoning_tokens == reply.usage.completion_tokens == 3


@pytest.mark.parametrize("stop", ["x>\n", "</tool_call>x", "l>x"])
def test_holding_back_for_a_stop_string_never_loses_a_mark(stop: str) -> None:
    text = f"<think>hm</think><tool_call>\n{WEATHER}\n</tool_call>"
    reply = committer([stop], reader=reading())
    pieces = [reply.push(delta([token])) for token in letters(text)] + [reply.push(delta([EOS], "stop"))]
    parts = joined(part for piece in pieces for part in piece.parts)
    assert [type(part) for part in parts] == [Thought, CallBegin, CallArguments]
    assert pieces[-1].finish == "tool_calls"


@pytest.mark.parametrize(
    ("text", "finish"),
    [
        (f"<tool_call>{WEATHER}</tool_call>", "tool_calls"),
        (f"<tool_call>{WEATHER[:-2]}", "stop"),
        ("Hello", "stop"),
    ],
)
def test_a_reply_ends_with_tool_calls_only_where_a_whole_one_was_read(text: str, finish: str) -> None:
    assert committer(reader=reading()).push(delta([*letters(text), EOS], "stop")).finish == finish
    assert committer(reader=reading()).push(delta(letters(text), "length")).finish == "length"


def test_where_one_call_is_wanted_the_reply_ends_behind_it() -> None:
    call = f"<tool_call>{WEATHER}</tool_call>"
    for tokens in ([delta(letters(call + " and more"))], [delta([token]) for token in letters(call + "!")]):
        reply = committer(reader=reading(parallel=False))
        pieces = [reply.push(each) for each in tokens]
        assert [piece.finish for piece in pieces if piece.finish] == ["tool_calls"]
        assert [piece.cut for piece in pieces if piece.finish] == [len(call)]
        assert reply.usage.completion_tokens == len(call)


def test_a_special_token_that_is_a_mark_reaches_the_reader_alone() -> None:
    llama = type("LikeLlama", (Llama,), {"mark": "<|im_start|>"})(SHOWN)

    def reply() -> Committer:
        reader = ReplyReader(tags=None, opened=False, format=llama)
        return committer(["art|>"], reader=reader, shown=SHOWN.characters)

    call = [MARK, *letters('{"name": "f", "parameters": {}}')]
    piece = reply().push(delta([*letters("a"), *call, EOS], "stop"))
    assert [type(part) for part in piece.parts] == [Words, CallBegin, CallArguments]
    assert piece.text == TOKENIZER.decode([*letters("a"), *call])
    stray = reply().push(delta([*letters("a"), MARK, *letters("b")], "length"))
    assert (stray.text, stray.parts) == ("ab", (Words("ab"),))  # and its name is no stop string
    typed = committer(reader=ReplyReader(tags=None, opened=False, format=llama), shown=SHOWN.characters)
    text = 'x<|im_start|>{"name": "f", "parameters": {}}'
    assert typed.push(delta(letters(text), "length")).parts == (Words(text),)
