"""Tokenizers rebuilt from GGUF metadata, against transformers' own reading of the same metadata."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

import pytest
from vocabularies import (
    CONTROL,
    TEXTS,
    byte_level_metadata,
    random_texts,
    sentencepiece_metadata,
)

from paceline.engine.errors import ModelError
from paceline.server.gguf_vocab import tokenizer_from_gguf


def _oracle(metadata: Mapping[str, Any]) -> Any:
    from transformers.integrations.gguf import convert_gguf_tokenizer

    names = {"model": "tokenizer_type", "pre": "pre_tokenizer_type", "token_type": "token_type"}
    fields = {
        names.get(key.removeprefix("tokenizer.ggml."), key.removeprefix("tokenizer.ggml.")): value
        for key, value in metadata.items()
    }
    backend, _ = convert_gguf_tokenizer("llama", fields)
    return backend


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "llama3", "qwen2", "tekken"])
def test_byte_level_vocabularies_equal_transformers(pre: str) -> None:
    metadata = byte_level_metadata(pre)
    ours, theirs = tokenizer_from_gguf(metadata), _oracle(metadata)
    for text in [*TEXTS, *random_texts(), "<|im_start|>user\n<think> hi</think><|im_end|>"]:
        # The models' own tokenizer.json normalises for qwen2, which transformers' GGUF reading leaves out.
        expected = unicodedata.normalize("NFC", text) if pre == "qwen2" else text
        assert ours.encode(text).ids == theirs.encode(expected, add_special_tokens=False).ids, text


@pytest.mark.parametrize("merges", [False, True])
def test_sentencepiece_vocabularies_equal_transformers(merges: bool) -> None:
    metadata = sentencepiece_metadata()
    if merges:
        pieces = [token for token in metadata["tokenizer.ggml.tokens"][259:] if len(token) > 1]
        known = set(metadata["tokenizer.ggml.tokens"])
        metadata["tokenizer.ggml.merges"] = [
            next(
                f"{piece[:cut]} {piece[cut:]}"
                for cut in range(1, len(piece))
                if piece[:cut] in known and piece[cut:] in known
            )
            for piece in pieces
        ]
    ours, theirs = tokenizer_from_gguf(metadata), _oracle(metadata)
    for text in [*TEXTS, *random_texts(), "<s> hi </s>there"]:
        ids = ours.encode(text, add_special_tokens=False).ids
        assert ids == theirs.encode(text, add_special_tokens=False).ids, text
        assert ours.decode(ids) == theirs.decode(ids), text


def test_pieces_of_equal_score_are_ranked_as_by_transformers() -> None:
    metadata = sentencepiece_metadata()
    metadata["tokenizer.ggml.scores"] = [score // 50 for score in metadata["tokenizer.ggml.scores"]]
    theirs = json.loads(_oracle(metadata).to_str())["model"]["merges"]
    ours = json.loads(tokenizer_from_gguf(metadata).to_str())["model"]["merges"]
    assert ours == [merge for merge in theirs if "".join(merge) not in ("<s>", "</s>", "<unk>")]


def test_smollm_splits_digits_before_the_pattern() -> None:
    plain, digits = (tokenizer_from_gguf(byte_level_metadata(pre)) for pre in ("gpt-2", "smollm"))
    pieces = digits.pre_tokenizer.pre_tokenize_str("a  12 ²3")
    assert [piece for piece, _ in pieces] == ["a", "ĠĠ", "1", "2", "Ġ", "Â²", "3"]
    assert [piece for piece, _ in plain.pre_tokenizer.pre_tokenize_str("a  12")] == ["a", "Ġ", "Ġ12"]


def test_a_file_that_does_not_name_its_pre_tokenizer_is_gpt2() -> None:
    unnamed, named = (tokenizer_from_gguf(byte_level_metadata(pre)) for pre in (None, "gpt-2"))
    for text in TEXTS:
        assert unnamed.encode(text).ids == named.encode(text).ids


def test_no_text_merges_into_a_control_token() -> None:
    metadata = sentencepiece_metadata()
    for token in ("<", "s>", "/s>"):  # parts that would make <s> and </s>
        if token not in metadata["tokenizer.ggml.tokens"]:
            metadata["tokenizer.ggml.tokens"].append(token)
            metadata["tokenizer.ggml.scores"].append(-1.0)
            metadata["tokenizer.ggml.token_type"].append(1)
    tokenizer = tokenizer_from_gguf(metadata)
    tokenizer.encode_special_tokens = True
    assert not {1, 2} & set(tokenizer.encode("<s>a</s>", add_special_tokens=False).ids)


def test_without_a_space_prefix_nothing_is_put_before_the_text() -> None:
    with_prefix, without = (tokenizer_from_gguf(sentencepiece_metadata(prefix=prefix)) for prefix in (True, False))
    assert with_prefix.encode("the cat", add_special_tokens=False).tokens[0].startswith("▁")
    assert not without.encode("the cat", add_special_tokens=False).tokens[0].startswith("▁")
    assert with_prefix.decode(with_prefix.encode("the cat").ids) == "the cat"
    assert without.decode(without.encode(" the cat").ids) == " the cat"


def _without(key: str) -> dict[str, Any]:
    return {name: value for name, value in byte_level_metadata().items() if name != f"tokenizer.ggml.{key}"}


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"tokenizer.ggml.model": "bert"}, ["'bert'", "gpt2", "llama"]),
        ({}, ["None", "gpt2"]),
        (byte_level_metadata() | {"tokenizer.ggml.pre": "viking"}, ["'viking'", "smollm", "llama-bpe", "qwen2"]),
        (_without("tokens"), ["tokenizer.ggml.tokens"]),
        (_without("merges"), ["tokenizer.ggml.merges"]),
        (byte_level_metadata() | {"tokenizer.ggml.token_type": [CONTROL]}, ["1 token types"]),
        (byte_level_metadata() | {"tokenizer.ggml.merges": ["nospace"]}, ["'nospace'"]),
        (byte_level_metadata() | {"tokenizer.ggml.merges": ["q€ Ġx€"]}, ["broken"]),
        (sentencepiece_metadata() | {"tokenizer.ggml.scores": [0.0]}, ["1 scores"]),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(metadata: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ModelError) as caught:
        tokenizer_from_gguf(metadata)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)
