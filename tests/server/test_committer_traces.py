"""What a committer makes of traces: steps that end where the reply does, and of what its words are made."""

from __future__ import annotations

from token_replies import committer, delta, letters
from traces import chain_trace

from paceline.server.reply_parts import spans_of


def test_a_step_ends_where_a_stop_string_inside_its_run_is_complete() -> None:
    run = letters("a.bc")
    piece = committer(["."]).push(delta(run, drafted=3, accepted=3, trace=chain_trace(run, ["x", "y", "z"])))
    assert piece.step is not None
    assert piece.step["tokens"] == [{"text": "a", "source": "x"}, {"text": ".", "source": "y"}]
    assert (piece.step["accepted"], piece.step["emitted"], piece.step["drafted"]) == (2, 2, 3)
    assert (piece.step["tree"]["path"], piece.step["nodes"]) == ([0, 1, 2], 4)
    assert [spans_of(part) for part in piece.parts] == [((1, "x"),)]


def test_held_back_text_keeps_the_drafters_of_its_tokens() -> None:
    """Of a stop string that does not come, of a character over two steps, and of one that is cut off."""
    first, second, third = letters("xST"), letters("O😀")[:3], letters("O😀")[3:]
    reply = committer(["STOP"])
    pieces = [
        reply.push(delta(first, trace=chain_trace(first, ["a", "b"]))),
        reply.push(delta(second, trace=chain_trace(second, ["c", "d"]))),
        reply.push(delta(third, trace=chain_trace(third, ["e"]))),
        reply.push(delta(letters("😀")[:2], trace=chain_trace(letters("😀")[:2], ["f"]))),
        reply.push(delta([], "length")),
    ]
    spans = [[spans_of(part) for part in piece.parts] for piece in pieces]
    assert spans == [[((1, "a"),)], [], [((1, "b"), (1, ""), (1, "c"), (1, ""))], [], [((1, ""),)]]
    assert [piece.text for piece in pieces] == ["x", "", "STO😀", "", "\ufffd"]
    assert [piece.step is None for piece in pieces] == [False] * 4 + [True]


def test_without_a_trace_nothing_of_it_is_made() -> None:
    piece = committer().push(delta(letters("ab"), drafted=1, accepted=1))
    assert piece.step is None
    assert list(map(spans_of, piece.parts)) == [None]
