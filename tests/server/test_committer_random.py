"""Random replies: text, usage, logprobs and figures against an oracle that decodes every prefix as a whole."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from token_replies import EOS, TOKENIZER, committer, delta, letters, logprobs

from paceline.engine.request import Delta, Finish
from paceline.server.committer import Committer, Piece
from paceline.server.reply_parts import joined
from paceline.server.reply_reader import ReplyReader
from paceline.server.text_decoder import Shown, without_shown
from paceline.server.thinking import Tags
from paceline.server.tool_formats.llama import Llama

ALPHABET = [*letters("abc"), *letters("ď"), *letters("😀"), *TOKENIZER.encode("</think>"), EOS]
REPLIES = st.lists(st.sampled_from(ALPHABET), max_size=25)
STOPS = st.lists(st.text("abcď😀</th>", min_size=1, max_size=4), max_size=4)


def chunked(tokens: Sequence[int], cuts: Sequence[int], finish: Finish) -> list[Delta]:
    bounds = [0, *sorted(cut % (len(tokens) + 1) for cut in cuts), len(tokens)]
    runs = [tokens[start:end] for start, end in itertools.pairwise(bounds)]
    return [
        delta(run, finish if last else None, drafted=max(len(run) - 1, 0), accepted=max(len(run) - 1, 0))
        for run, last in zip(runs, [False] * (len(runs) - 1) + [True], strict=True)
    ]


def play(deltas: Sequence[Delta], stops: Sequence[str], **options: Any) -> tuple[Committer, list[Piece]]:
    reply = committer(stops, **options)
    return reply, [reply.push(each) for each in deltas]


def oracle(tokens: Sequence[int], stops: Sequence[str]) -> tuple[str, int, bool]:
    """(text, tokens kept, stopped), by decoding every prefix of the reply as a whole."""
    for kept in range(1, len(tokens) + 1):
        if tokens[kept - 1] == EOS:
            text, found = _cut(TOKENIZER.decode(tokens[: kept - 1]), stops)
            return text, kept, True
        whole = TOKENIZER.decode(tokens[:kept])
        certain = whole.rstrip("\ufffd") if kept < len(tokens) else whole
        text, found = _cut(certain, stops)
        if found:
            return text, kept, True
    return TOKENIZER.decode(tokens), len(tokens), False


def _cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    for end in range(1, len(text) + 1):
        lengths = [len(stop) for stop in stops if text[:end].endswith(stop)]
        if lengths:
            return text[: end - max(lengths)], True
    return text, False


@given(tokens=REPLIES, stops=STOPS, cuts=st.lists(st.integers(0, 1000), max_size=6))
def test_streamed_pieces_equal_the_text_computed_at_once(tokens: list[int], stops: list[str], cuts: list[int]) -> None:
    reply, pieces = play(chunked(tokens, cuts, "length"), stops)
    text, kept, stopped = oracle(tokens, stops)
    assert "".join(piece.text for piece in pieces) == reply.text == text
    assert [piece.finish for piece in pieces if piece.finish] == ["stop" if stopped else "length"]
    assert [token for piece in pieces for token in piece.tokens] == tokens[:kept]
    assert reply.usage.completion_tokens == kept
    assert {piece.cut for piece in pieces} <= {None, kept}


@given(tokens=REPLIES, stops=STOPS, cuts=st.lists(st.integers(0, 1000), max_size=6), limit=st.booleans())
def test_how_tokens_are_spread_over_deltas_changes_nothing(
    tokens: list[int], stops: list[str], cuts: list[int], limit: bool
) -> None:
    finish: Finish = "length" if limit else "abort"
    results = set()
    for split in (cuts, [], range(len(tokens))):
        reply, pieces = play(chunked(tokens, list(split), finish), stops)
        kept = tuple(token for piece in pieces for token in piece.tokens)
        results.add((reply.text, kept, reply.usage, next(piece.finish for piece in pieces if piece.finish)))
    assert len(results) == 1


MARK = TOKENIZER.special_tokens["<|im_start|>"]
SHOWN = Shown(TOKENIZER.special_tokens)
LIKE_LLAMA = type("LikeLlama", (Llama,), {"mark": "<|im_start|>"})(SHOWN)
MARKED = ['{"name": "f", "parameters": {', "}}", "<think>", "</think>", "</thi", "nk>", " ", "a"]


@given(
    shreds=st.lists(st.sampled_from([*MARKED, "", "!"]), max_size=12),
    stops=st.lists(st.sampled_from(["nk>", "}} ", ">a", "f"]), max_size=2),
    cuts=st.lists(st.integers(0, 1000), max_size=6),
    opened=st.booleans(),
    parallel=st.booleans(),
)
def test_thoughts_and_calls_do_not_depend_on_how_tokens_are_spread(
    shreds: list[str], stops: list[str], cuts: list[int], opened: bool, parallel: bool
) -> None:
    tokens = [token for shred in shreds for token in ([MARK] if shred == "" else TOKENIZER.encode(shred))]
    results = []
    for split in (cuts, [], range(len(tokens))):
        reader = ReplyReader(
            tags=Tags("<think>", "</think>", "<think>"), opened=opened, format=LIKE_LLAMA, parallel=parallel
        )
        options = {"reader": reader, "shown": SHOWN.characters}
        reply, pieces = play(chunked(tokens, list(split), "stop"), stops, **options)
        parts = joined(part for piece in pieces for part in piece.parts)
        kept = tuple(token for piece in pieces for token in piece.tokens)
        finishes = [piece.finish for piece in pieces if piece.finish]
        results.append((parts, kept, reply.usage, reply.text, finishes))
        assert without_shown(reply.text + repr(parts)) == reply.text + repr(parts)
        assert reply.usage.reasoning_tokens <= len(kept)
    assert results[0] == results[1] == results[2]


@given(tokens=REPLIES, stops=STOPS, cuts=st.lists(st.integers(0, 1000), max_size=6))
def test_logprobs_and_figures_end_where_the_tokens_end(tokens: list[int], stops: list[str], cuts: list[int]) -> None:
    plain = chunked(tokens, cuts, "length")
    deltas = [
        Delta(
            request_id="r",
            tokens=each.tokens,
            finish=each.finish,
            logprobs=logprobs(each.tokens),
            drafted=each.drafted,
            accepted=each.accepted,
        )
        for each in plain
    ]
    reply, pieces = play(deltas, stops)
    for piece in pieces:
        assert [item.token for item in piece.logprobs or ()] == list(piece.tokens)
        assert piece.accepted <= len(piece.tokens)
    figures = reply.figures.body()
    histogram = figures["acceptance_histogram"]
    assert sum(histogram) == figures["num_spec_steps"]
    assert sum(kept * steps for kept, steps in enumerate(histogram)) == figures["num_accepted_draft_tokens"]
    assert figures["num_accepted_draft_tokens"] == sum(piece.accepted for piece in pieces)
    assert figures["num_draft_tokens"] == sum(piece.drafted for piece in pieces)
    assert len(histogram) == figures["num_spec_tokens"] + 1
