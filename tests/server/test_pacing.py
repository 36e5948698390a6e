from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_replies import committer, delta, letters
from traces import chain_trace

from paceline.server.committer import Piece
from paceline.server.pacing import Even, Straight, pacer_for, split
from paceline.server.reply_parts import CallBegin, Thought, Words, spans_of
from paceline.server.voice import NO_VOICE, Voice


def piece(text: str, **fields: object) -> Piece:
    """One token a letter."""
    made = Piece(
        text=text,
        text_ends=tuple(range(1, len(text) + 1)),
        parts=(Words(text),) if text else (),
        tokens=tuple(range(len(text))),
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def texts(pieces: object) -> list[str]:
    return [share.text for share in pieces]  # type: ignore[attr-defined]


def at_pace() -> Even:
    """Behind its first two steps, which were one second apart; the second came at 11."""
    pacer = Even()
    assert texts(pacer.push(piece("a"), 10.0)) == ["a"]
    assert texts(pacer.push(piece("b"), 11.0)) == ["b"]
    return pacer


def test_a_burst_is_spread_over_the_time_to_the_next_step() -> None:
    pacer = at_pace()
    assert texts(pacer.push(piece("cdef"), 12.0)) == ["c"]
    assert pacer.patience(12.0) == 0.25
    assert texts(pacer.due(12.2)) == []
    assert texts(pacer.due(12.25)) == ["d"]
    assert pacer.patience(12.5) == 0.0
    assert texts(pacer.due(12.8)) == ["e", "f"]
    assert pacer.patience(12.8) is None


def test_the_first_text_and_the_end_do_not_wait() -> None:
    pacer = Even()
    assert texts(pacer.push(piece(""), 9.0)) == [""]
    assert texts(pacer.push(piece("abc"), 10.0)) == ["abc"]
    pacer = at_pace()
    pacer.push(piece("cd"), 12.0)
    assert texts(pacer.push(piece("ef", finish="stop"), 12.1)) == ["d", "ef"]
    assert pacer.patience(12.1) is None


def test_nothing_is_later_than_one_step() -> None:
    """The next step came sooner than expected."""
    pacer = at_pace()
    pacer.push(piece("cde"), 12.0)
    assert texts(pacer.push(piece("fg"), 12.1)) == ["d", "e", "f"]


def test_a_cancel_finds_all_of_it() -> None:
    pacer = at_pace()
    pacer.push(piece("cde"), 12.0)
    assert texts(pacer.flush()) == ["d", "e"]
    assert pacer.patience(12.0) is None


def test_the_estimate_follows() -> None:
    pacer = at_pace()
    now = 11.0
    for _ in range(40):
        now += 2.0
        pacer.push(piece("x"), now)
    pacer.push(piece("yz"), now + 2.0)
    assert pacer.patience(now + 2.0) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    "parts", [(Thought("abc"),), (Words("ab"), CallBegin(0, "call", "name")), (Words("a"), Words("b"))]
)
def test_only_plain_text_is_spread(parts: tuple[object, ...]) -> None:
    mixed = piece("abc", parts=parts)
    assert split(mixed) == [mixed]
    assert split(piece("a")) == [piece("a")]


@given(st.text("aé🙂 ", min_size=1, max_size=12), st.integers(0, 5))
def test_shares_are_the_piece(text: str, drafted: int) -> None:
    """As the committer makes it, characters of several tokens included."""
    whole = committer().push(delta(letters(text), drafted=drafted, accepted=drafted))
    shares = split(whole)
    assert "".join(texts(shares)) == whole.text == text
    assert sum((share.tokens for share in shares), ()) == whole.tokens
    assert sum((share.parts for share in shares), ()) == tuple(Words(share.text) for share in shares)
    assert (sum(share.drafted for share in shares), sum(share.accepted for share in shares)) == (
        drafted,
        whole.accepted,
    )
    assert len(shares) == len(text)


@given(st.text("aé🙂 ", min_size=1, max_size=12))
def test_shares_of_a_traced_piece_have_its_step_once_and_tell_what_each_is_made_of(text: str) -> None:
    tokens = letters(text)
    trace = chain_trace(tokens, [f"drafter {i}" for i in range(len(tokens) - 1)])
    whole = committer().push(delta(tokens, drafted=len(tokens) - 1, accepted=len(tokens) - 1, trace=trace))
    assert whole.step is not None
    shares = split(whole)
    assert [share.step for share in shares] == [whole.step, *[None] * (len(shares) - 1)]
    spans = [spans_of(part) for share in shares for part in share.parts]
    assert [size for each in spans if each is not None for size, _ in each] == [1] * len(text)
    assert sum((each for each in spans if each is not None), ()) == spans_of(whole.parts[0])


def test_off_by_default() -> None:
    assert isinstance(pacer_for(NO_VOICE), Straight)
    pacer = pacer_for(NO_VOICE)
    for now in (1.0, 2.0, 3.0):
        assert texts(pacer.push(piece("abc"), now)) == ["abc"]
        assert pacer.patience(now) is None
        assert list(pacer.due(now)) == list(pacer.flush()) == []
    assert isinstance(pacer_for(Voice(pace=True)), Even)
