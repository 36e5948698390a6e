"""Incremental decoding: what known servers got wrong about split characters, leading spaces and joined pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from vocabularies import TEXTS, byte_level_tokenizer, random_texts, sentencepiece_tokenizer

from paceline.engine.errors import ModelError
from paceline.server.text_decoder import Shown, Spelling, TextDecoder, without_shown
from paceline.server.tokenizer import Tokenizer

BYTE_LEVEL = byte_level_tokenizer()
SENTENCEPIECE = sentencepiece_tokenizer()
TOKENIZERS = {"byte-level": BYTE_LEVEL, "sentencepiece": SENTENCEPIECE}
kinds = pytest.mark.parametrize("kind", TOKENIZERS)


def byte_tokens(tokenizer: Tokenizer) -> dict[int, int]:
    """Byte value to the token that is this byte alone."""
    table = {}
    for id_ in range(tokenizer.vocab_size):
        raw = tokenizer.token_bytes(id_)
        if len(raw) == 1:
            table.setdefault(raw[0], id_)
    return table


def as_sentencepiece(text: str) -> str:
    """What is left of a text: its mark is a space, and one leading space is the one that is put there anyway."""
    return text.replace("▁", " ").removeprefix(" ")


def stream(tokenizer: Tokenizer, ids: list[int], cuts: list[int]) -> list[str]:
    decoder = tokenizer.decoder()
    bounds = [0, *sorted(cut % (len(ids) + 1) for cut in cuts), len(ids)]
    pieces = [decoder.push(ids[start:end]) for start, end in pairwise(bounds)]
    return [*pieces, decoder.flush()]


@kinds
@given(data=st.data(), cuts=st.lists(st.integers(0, 1000), max_size=8))
def test_joined_pieces_equal_decode_for_any_token_stream(kind: str, data: st.DataObject, cuts: list[int]) -> None:
    tokenizer = TOKENIZERS[kind]
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size + 3), max_size=40))
    assert "".join(stream(tokenizer, ids, cuts)) == tokenizer.decode(ids)


@kinds
@given(text=st.text(max_size=40), cuts=st.lists(st.integers(0, 1000), max_size=8))
def test_any_text_comes_back_whole_and_no_piece_has_a_part_of_a_character(
    kind: str, text: str, cuts: list[int]
) -> None:
    tokenizer = TOKENIZERS[kind]
    pieces = stream(tokenizer, tokenizer.encode(text), cuts)
    assert "".join(pieces) == (as_sentencepiece(text) if kind == "sentencepiece" else text)
    assert sum(piece.count("\ufffd") for piece in pieces) == text.count("\ufffd")
    assert pieces[-1] == ""


@kinds
@pytest.mark.parametrize("text", ["ď", "😀", "漢字", "👨‍👩‍👧", "a漢b😀c"])
def test_a_character_split_over_tokens_appears_once_it_is_whole(kind: str, text: str) -> None:
    tokenizer = TOKENIZERS[kind]
    table = byte_tokens(tokenizer)
    decoder = tokenizer.decoder()
    pieces = [decoder.push([table[byte]]) for byte in text.encode()]
    assert [piece for piece in pieces if piece] == list(text)
    assert decoder.flush() == ""


@kinds
def test_a_tail_that_is_really_cut_is_flushed(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    table = byte_tokens(tokenizer)
    ids = [table[byte] for byte in "a😀".encode()[:-1]]
    decoder = tokenizer.decoder()
    assert [decoder.push([id_]) for id_ in ids] == ["a", "", "", ""]
    assert decoder.flush() == "\ufffd"
    assert tokenizer.decode(ids) == "a\ufffd"


@given(raw=st.binary(max_size=40))
def test_broken_utf8_becomes_what_the_library_makes_of_it(raw: bytes) -> None:
    table = byte_tokens(BYTE_LEVEL)
    ids = [table[byte] for byte in raw]
    assert BYTE_LEVEL.decode(ids) == BYTE_LEVEL._backend.decode(ids)


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece_decode_equals_the_library(prefix: bool) -> None:
    tokenizer = sentencepiece_tokenizer(prefix=prefix)
    for text in [*TEXTS, *random_texts()]:
        ids = [1, *tokenizer.encode(text), 2]
        expected = as_sentencepiece(text) if prefix else text.replace("▁", " ")
        assert tokenizer.decode(ids) == tokenizer._backend.decode(ids) == expected


def test_only_the_space_that_the_tokenizer_added_is_dropped() -> None:
    for text in ("hi", " hi", "  hi", "   ", "", "▁"):
        pieces = stream(SENTENCEPIECE, SENTENCEPIECE.encode(text), list(range(20)))
        assert "".join(pieces) == as_sentencepiece(text)


def test_every_token_is_looked_at_once() -> None:
    asked: list[int] = []

    def token_bytes(id_: int) -> bytes:
        asked.append(id_)
        return b"ab"

    decoder = TextDecoder(token_bytes)
    for id_ in range(500):
        decoder.push([id_])
    assert asked == list(range(500))


@pytest.mark.parametrize(
    "state",
    [
        "null",
        '{"type": "WordPiece", "prefix": "##", "cleanup": true}',
        '{"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "CTC"}]}',
    ],
)
def test_an_unsupported_decoder_is_named(state: str) -> None:
    with pytest.raises(ModelError, match=r"none|WordPiece|CTC"):
        Spelling.from_decoder(state)


def test_special_tokens_that_are_shown_come_out_as_a_character_no_text_holds() -> None:
    tokenizer = byte_level_tokenizer()
    shown = Shown(tokenizer.special_tokens)
    start, end = shown.spelling("<|im_start|>"), shown.spelling("<|im_end|>")
    assert shown.spelling("<think>") == "<think>"
    assert shown.spelling("<|im_start|>") == start != end
    ids = [tokenizer.special_tokens[name] for name in ("<|im_start|>", "<|endoftext|>", "<|im_end|>")]
    decoder = tokenizer.decoder(shown.characters)
    letters = tokenizer.encode("a😀")
    text = decoder.push([*letters[:-1], ids[0], letters[-1], *ids[1:]]) + decoder.flush()
    assert text == f"a{start}😀{end}"
    assert without_shown(text) == tokenizer.decode(letters) == "a😀"
    raw = bytes(range(256)) * 2 + start.encode(errors="surrogatepass")
    alphabet = {tokenizer.token_bytes(i): i for i in range(tokenizer.vocab_size)}
    spelled = tokenizer.decoder(shown.characters).push(alphabet[bytes([byte])] for byte in raw)
    assert without_shown(spelled) == spelled


def test_a_shown_token_is_no_beginning_of_a_text() -> None:
    tokenizer = sentencepiece_tokenizer()
    decoder = tokenizer.decoder({tokenizer.special_tokens["<s>"]: "\ud800"})
    ids = [tokenizer.special_tokens["<s>"], *tokenizer.encode("the cat")]
    assert decoder.push(ids) == "\ud800the cat"
