from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_models

from paceline.engine.errors import ModelError
from paceline.engine.model.assets import TextAssets
from paceline.engine.model.checkpoint import open_checkpoint
from paceline.engine.model.vocabulary import merges, mismatch, tokens


def assets(tokenizer_json: str | None = None, gguf: dict[str, Any] | None = None) -> TextAssets:
    return TextAssets(
        tokenizer_json=tokenizer_json, gguf=gguf, chat_template=None, bos_token=None, eos_token=None, eos_ids=()
    )


def changed(**model: Any) -> TextAssets:
    raw = json.loads(tiny_models.tokenizer_json())
    raw["model"] |= model
    return assets(json.dumps(raw))


ITS_OWN = assets(tiny_models.tokenizer_json())


def test_a_folder_and_the_gguf_file_made_of_it_agree(tmp_path: Path) -> None:
    folder = tiny_models.make_folder(tmp_path / "tiny", "smollm2")
    path = tiny_models.write_gguf(folder, tmp_path / "tiny.gguf")
    one, other = (open_checkpoint(each, tmp_path).text for each in (folder, path))
    assert tokens(one) == tokens(other)
    assert merges(one) == merges(other) != []
    assert mismatch(one, other) is None


def test_the_first_difference_is_named() -> None:
    vocabulary = {token: i for i, token in enumerate(tiny_models.vocabulary())}
    names = {i: token for token, i in vocabulary.items()}
    swapped = vocabulary | {names[10]: 11, names[11]: 10}
    message = mismatch(ITS_OWN, changed(vocab=swapped))
    assert message == f"token 10 is {names[10]!r} in one and {names[11]!r} in the other"
    pairs = [list(pair) for pair in tiny_models.MERGES]
    assert mismatch(ITS_OWN, changed(merges=pairs)) is None
    pairs[1], pairs[2] = pairs[2], pairs[1]
    assert "merge 1" in str(mismatch(ITS_OWN, changed(merges=pairs)))


def test_padding_and_absent_tokenizers_do_not_count() -> None:
    metadata = {
        "tokenizer.ggml.tokens": ["a", "b", "[PAD2]"],
        "tokenizer.ggml.token_type": [1, 1, 5],
        "tokenizer.ggml.merges": [],
    }
    assert tokens(assets(gguf=metadata)) == {0: "a", 1: "b"}
    longer = {"tokenizer.ggml.tokens": ["a", "b", "c"]}
    assert mismatch(assets(gguf=metadata), assets(gguf=longer)) is None
    assert mismatch(assets(), ITS_OWN) is None
    unigram = json.dumps({"model": {"vocab": [["a", -1.0], ["b", -2.0]]}, "added_tokens": [{"id": 9, "content": "x"}]})
    assert tokens(assets(unigram)) == {0: "a", 1: "b", 9: "x"}
    apart = assets(json.dumps({"model": {"vocab": {"z": 70}}}))
    assert "in common" in str(mismatch(assets(unigram), apart))


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_tokenizer_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        tokens(assets(text))
