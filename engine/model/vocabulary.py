"""Whether two models mean the same text by the same token ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from paceline.engine.errors import ModelError

from .assets import TextAssets

_UNUSED = 5  # tokenizer.ggml.token_type of rows that only fill a table


def mismatch(one: TextAssets, other: TextAssets) -> str | None:
    """The first difference between two vocabularies, as the end of a sentence; None where there is none.

    Ids that only one of them has do not count: tables are padded, and differ in special tokens at their end. Nor do
    merges that only one of them has; a model without a tokenizer has nothing that could differ. Raises ModelError for
    one that cannot be read.
    """
    mine, theirs = tokens(one), tokens(other)
    shared = sorted(mine.keys() & theirs.keys())
    if mine and theirs and not shared:
        return "they have no token ids in common"
    for token in shared:
        if mine[token] != theirs[token]:
            return f"token {token} is {mine[token]!r} in one and {theirs[token]!r} in the other"
    for place, (merge, again) in enumerate(zip(merges(one), merges(other), strict=False)):
        if merge != again:
            return f"merge {place} is {merge!r} in one and {again!r} in the other"
    return None


def tokens(text: TextAssets) -> dict[int, str]:
    """Id -> token as the tokenizer spells it."""
    if text.tokenizer_json is None:
        metadata = text.gguf or {}
        spelled = metadata.get("tokenizer.ggml.tokens") or []
        kinds = metadata.get("tokenizer.ggml.token_type") or [0] * len(spelled)
        return {i: token for i, (token, kind) in enumerate(zip(spelled, kinds, strict=False)) if kind != _UNUSED}
    tokenizer = _parsed(text.tokenizer_json)
    vocabulary = _model(tokenizer).get("vocab") or {}
    if isinstance(vocabulary, dict):
        found = {number: token for token, number in vocabulary.items()}
    else:  # of a unigram model: [token, score] in id order
        found = {number: entry[0] for number, entry in enumerate(vocabulary)}
    return found | {added["id"]: added["content"] for added in tokenizer.get("added_tokens") or []}


def merges(text: TextAssets) -> list[str]:
    """Pairs in the order they are joined, each as two words; empty where the tokenizer has none."""
    if text.tokenizer_json is None:
        return list((text.gguf or {}).get("tokenizer.ggml.merges") or [])
    # Newer files spell a pair as a list.
    found = _model(_parsed(text.tokenizer_json)).get("merges") or []
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in found]


def _model(tokenizer: Mapping[str, Any]) -> Mapping[str, Any]:
    model = tokenizer.get("model")
    return model if isinstance(model, dict) else {}


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        tokenizer = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ModelError(
            f"The model's tokenizer.json is not valid JSON ({error}); download the model again."
        ) from error
    if not isinstance(tokenizer, dict):
        raise ModelError("The model's tokenizer.json must hold a JSON object; download the model again.")
    return tokenizer
