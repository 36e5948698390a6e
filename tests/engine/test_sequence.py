"""A sequence's derived state and where its reply ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import make_request
from grammars import allowed, small_tokenizer

from paceline.engine.request import Finish
from paceline.engine.sequence import Sequence
from paceline.server.grammars import Grammars

CONTEXT = 20


def sequence(output: list[int] | None = None, **options: object) -> Sequence:
    seq = Sequence(make_request("r", [5, 6, 7], **options), arrival=0)  # type: ignore[arg-type]
    seq.tokens += output or []
    return seq


def test_it_starts_as_its_prompt_with_nothing_computed() -> None:
    seq = sequence()
    assert (seq.id, seq.tokens, seq.pending, seq.output_count, seq.is_decoding) == ("r", [5, 6, 7], 3, 0, False)
    seq.tokens.append(1)
    assert seq.request.prompt == (5, 6, 7)


def test_decoding_is_one_pending_token_that_the_model_chose() -> None:
    seq = sequence()
    seq.num_computed = 2
    assert (seq.pending, seq.is_decoding) == (1, False)  # the prompt's last token
    seq.tokens.append(9)
    seq.num_computed = 3
    assert (seq.pending, seq.is_decoding, seq.output_count) == (1, True, 1)
    seq.num_computed = 0  # preempted
    assert (seq.pending, seq.is_decoding, seq.output_count) == (4, False, 1)


def test_two_sequences_with_equal_fields_are_two() -> None:
    one, other = sequence(), sequence()
    assert one != other
    assert other not in [one]


@pytest.mark.parametrize(
    ("token", "count", "output", "finish"),
    [
        (1, 1, 0, None),
        (1, 9, 0, None),
        (1, 10, 0, "length"),  # max_tokens
        (1, 11, 0, "length"),
        (1, 3, 7, "length"),  # max_tokens, counted with what is there already
        (1, 2, 7, None),
        (2, 1, 0, "stop"),
        (2, 10, 0, "stop"),  # a stop id and the length at once: it stopped by itself
    ],
)
def test_a_reply_ends_by_a_stop_id_or_its_length(token: int, count: int, output: int, finish: Finish | None) -> None:
    seq = sequence([1] * output, max_tokens=10, stop_ids=frozenset({2}))
    assert seq.ending(token, count, context_length=1000) == finish


def test_a_reply_ends_where_the_context_does() -> None:
    seq = sequence([1] * 10, max_tokens=500)  # 13 tokens
    assert seq.ending(1, CONTEXT - 13 - 1, CONTEXT) is None
    assert seq.ending(1, CONTEXT - 13, CONTEXT) == "length"


def test_its_matcher_comes_along_with_its_tokens_and_the_path_of_a_walk() -> None:
    a, b, c = (small_tokenizer().encode(letter)[0] for letter in "xyz")
    grammar = Grammars(small_tokenizer(), 128).compile("start: /xyz(zy)*/", "x")

    def may(path: tuple[int, ...] = ()) -> list[int]:
        matcher = seq.matcher(path)
        assert matcher is not None
        return allowed(matcher)

    seq = sequence(grammar=grammar)
    assert may() == [a]
    assert may((a,)) == [b]
    assert may((a, b)) == [c]
    seq.tokens += (a, b, c)  # the walk's, and the token it ended with
    assert may() == [0, c]
    seq.num_computed, seq.blocks = 0, []  # preempted: the tokens stay
    assert may((c,)) == [b]
    assert sequence().matcher() is None


def test_of_a_prompt_that_is_only_warmed_full_blocks_are_known() -> None:
    request = replace(make_request("r", range(40)), prefill_only=True)
    seq = Sequence(request, 0)
    assert (seq.prompt_length, seq.tokens, seq.output_count) == (32, list(range(32)), 0)
    assert not any(seq.samples_after(known) for known in (31, 32))
    assert [seq.is_warm_after(known) for known in (0, 31, 32)] == [False, False, True]
    seq.num_computed = 31
    assert not seq.is_decoding
    reply = sequence([])
    assert not any(reply.is_warm_after(known) for known in range(reply.pending + 1))
    assert reply.samples_after(reply.pending)
