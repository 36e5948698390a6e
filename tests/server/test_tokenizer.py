"""The tokenizer of the default model against transformers, and what is and is not a control token."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken
from vocabularies import (
    TEXTS,
    byte_level_metadata,
    byte_level_tokenizer,
    random_texts,
    sentencepiece_metadata,
    sentencepiece_tokenizer,
    text_assets,
    whole_text,
)

from paceline.engine.errors import ModelError
from paceline.engine.model.checkpoint import TextAssets, open_checkpoint
from paceline.engine.model.sources import default_cache
from paceline.server.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def assets(default_model: Path) -> TextAssets:
    return open_checkpoint(default_model, default_cache()).text


@pytest.fixture(scope="module")
def default(assets: TextAssets) -> Tokenizer:
    return Tokenizer.from_assets(assets)


@pytest.fixture(scope="module")
def reference(default_model: Path) -> Any:
    """transformers' reading of the file, with the digit splitting of the model's own tokenizer.json.

    transformers ignores `tokenizer.ggml.pre = smollm` and cuts text by the GPT-2 pattern alone; llama.cpp and the
    tokenizer.json the model was trained with put every numeric character on its own first.
    """
    from tokenizers import pre_tokenizers
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(default_model.parent, gguf_file=default_model.name)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    return tokenizer


def test_the_default_model_is_tokenised_as_by_transformers(default: Tokenizer, reference: Any) -> None:
    for text in [*TEXTS, *random_texts(300), "<|im_start|>user\nHi <|im_end|><|endoftext|> <file_sep>"]:
        expected = reference.encode(text, add_special_tokens=False)
        assert default.encode_rendered(text) == expected, text
        assert default.decode(expected) == reference.decode(expected, skip_special_tokens=True), text
        assert whole_text(default, expected) == reference.decode(expected), text
        assert default.encode(text) == reference.encode(text, add_special_tokens=False, split_special_tokens=True)
    for text in TEXTS:  # 21 bytes that are rare in text are missing from this vocabulary
        assert default.decode(default.encode(text)) == text


def test_the_default_model_has_its_special_tokens(default: Tokenizer) -> None:
    assert default.vocab_size == 49152
    assert {0, 1, 2} <= default.special_ids
    assert default.special_tokens["<|im_end|>"] == 2
    assert 2 in default.eos_ids
    assert default.encode_rendered("<|im_start|>") == [1]
    assert default.token_bytes(2) == b""
    assert default.token_text(2) == "<|im_end|>"


def test_starting_up_imports_no_transformers(default_model: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from paceline.engine.model.checkpoint import open_checkpoint\n"
        "from paceline.server.chat_template import ChatTemplate\nfrom paceline.server.tokenizer import Tokenizer\n"
        "text = open_checkpoint(Path(sys.argv[1]), Path(sys.argv[2])).text\n"
        "ChatTemplate(text.chat_template, text.bos_token, text.eos_token, Tokenizer.from_assets(text))\n"
        "assert 'transformers' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code, str(default_model), str(default_cache())], check=True, timeout=120)


@pytest.mark.parametrize(
    "make", [byte_level_tokenizer, sentencepiece_tokenizer, partial(sentencepiece_tokenizer, prefix=False)]
)
def test_special_token_names_in_plain_text_are_text(make: Any) -> None:
    tokenizer: Tokenizer = make()
    for name, id_ in tokenizer.special_tokens.items():
        if name == "<unk>":  # what no piece covers is unknown, in any text
            continue
        text = f"a {name} b{name}"
        assert id_ in tokenizer.encode_rendered(text)
        ids = tokenizer.encode(text)
        assert not tokenizer.special_ids & set(ids)
        assert tokenizer.decode(ids) == text


def test_added_tokens_that_are_not_special_stay_tokens_in_plain_text() -> None:
    tokenizer = byte_level_tokenizer()
    think = tokenizer.vocab_size - 2
    assert tokenizer.encode("<think>a") == tokenizer.encode_rendered("<think>a")
    assert tokenizer.encode("<think>")[0] == think
    assert tokenizer.decode([think]) == "<think>"


@pytest.mark.parametrize("make", [byte_level_tokenizer, sentencepiece_tokenizer])
def test_a_guard_breaks_up_a_name_and_leaves_no_trace(make: Any) -> None:
    tokenizer: Tokenizer = make()
    name, id_ = list(tokenizer.special_tokens.items())[2]
    guard = "\ufdd0"
    rendered = f"{name}the cat {name[0]}{guard}{name[1:]} dog{name}"
    ids = tokenizer.encode_rendered(rendered, guard=guard)
    assert ids.count(id_) == 2
    assert ids[0] == ids[-1] == id_
    assert whole_text(tokenizer, ids) == rendered.replace(guard, "")
    for text in TEXTS:  # where there is nothing to break up it changes nothing
        assert tokenizer.encode_rendered(name + text, guard=guard) == tokenizer.encode_rendered(name + text)
    assert tokenizer.encode_rendered("a\ufdd1b", guard="\ufdd1") == tokenizer.encode("ab")


def test_a_guard_also_holds_for_names_that_are_looked_for_after_normalisation() -> None:
    backend = byte_level_tokenizer()._backend
    backend.add_tokens([AddedToken("<|late|>", special=True, normalized=True)])
    tokenizer = Tokenizer(backend)
    late = tokenizer.special_tokens["<|late|>"]
    assert tokenizer.encode_rendered("a<|late|>") == [*tokenizer.encode("a"), late]
    ids = tokenizer.encode_rendered("<|late|>a<\ufdd0|late|>", guard="\ufdd0")
    assert ids == [late, *tokenizer.encode("a<|late|>")]


def test_no_bos_is_added_to_a_rendered_template() -> None:
    from tokenizers import processors

    tokenizer = sentencepiece_tokenizer()
    backend = tokenizer._backend
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    again = Tokenizer.from_assets(text_assets(tokenizer_json=backend.to_str()))
    assert backend.encode("<s>hi").ids.count(1) == 2  # what a careless server would send
    assert again.encode_rendered("<s>hi").count(1) == 1
    assert again.encode("hi").count(1) == 0


def test_a_document_begins_as_the_models_texts_do_and_only_once() -> None:
    for metadata, opening in (
        (sentencepiece_metadata(), [1]),
        (sentencepiece_metadata() | {"tokenizer.ggml.add_bos_token": False}, []),
        (byte_level_metadata(), []),
        (byte_level_metadata() | {"tokenizer.ggml.add_bos_token": True}, [1]),
    ):
        tokenizer = Tokenizer.from_assets(text_assets(metadata))
        bos = metadata["tokenizer.ggml.tokens"][1]
        for text in ("a b", ""):
            assert tokenizer.encode_document(text) == [*opening, *tokenizer.encode_rendered(text)]
        assert tokenizer.encode_document(f"{bos}a b") == tokenizer.encode_rendered(f"{bos}a b")
        assert tokenizer.encode_rendered("a b") == tokenizer.encode("a b")


def test_spelled_tokens_have_the_names_of_special_ones() -> None:
    tokenizer = byte_level_tokenizer()
    text = "<|im_start|>user\nďábel 😀<|im_end|>"
    ids = tokenizer.encode_rendered(text)
    assert tokenizer.spell(ids) == text
    assert tokenizer.decode(ids) == "user\nďábel 😀"
    assert tokenizer.spell(ids[:-2]).endswith("\ufffd")


def test_tokenizer_json_and_gguf_give_the_same_tokenizer() -> None:
    ours = byte_level_tokenizer()
    backend = ours._backend
    backend.enable_truncation(max_length=3)  # a file may carry settings of its training
    backend.enable_padding(length=10)
    again = Tokenizer.from_assets(text_assets(tokenizer_json=backend.to_str()))
    assert again.special_tokens == ours.special_tokens
    backend.no_truncation()
    backend.no_padding()
    for text in TEXTS:
        assert again.encode_rendered(text) == ours.encode_rendered(text)
        assert again.encode(text) == ours.encode(text)
        assert again.decode(again.encode(text)) == text


def test_special_tokens_beyond_the_model_keep_their_ids() -> None:
    """As in tokenizer.json files, where the added tokens follow the vocabulary."""
    ours = byte_level_tokenizer()
    backend = ours._backend
    size = backend.get_vocab_size()
    backend.add_tokens(["<tool>"])
    backend.add_special_tokens(["<|end|>"])
    again = Tokenizer.from_assets(text_assets(tokenizer_json=backend.to_str()))
    assert again.encode_rendered("<tool><|end|>") == [size, size + 1]
    assert again.encode("<tool><|end|>")[0] == size
    assert size + 1 not in again.encode("<tool><|end|>")
    assert again.encode_rendered("<tool><|end|><\ufdd0|end|>", guard="\ufdd0")[:2] == [size, size + 1]
    assert again.vocab_size == size + 2


def test_token_text_is_for_people() -> None:
    tokenizer = byte_level_tokenizer()
    smile = next(i for i in range(tokenizer.vocab_size) if tokenizer.token_bytes(i) == b"\xf0")
    assert tokenizer.token_text(smile) == "bytes:\\xf0"
    assert tokenizer.token_bytes(smile) == b"\xf0"
    word = tokenizer.encode(" the")[0]
    assert tokenizer.token_text(word).encode() == tokenizer.token_bytes(word)
    assert tokenizer.token_text(10**6) == ""
    assert tokenizer.token_bytes(10**6) == b""


def test_lone_surrogates_become_replacement_characters() -> None:
    tokenizer = byte_level_tokenizer()
    text = json.loads('"a\\ud800b"')
    assert tokenizer.decode(tokenizer.encode(text)) == "a\ufffdb"
    assert tokenizer.decode(tokenizer.encode_rendered(text)) == "a\ufffdb"


def test_end_tokens_come_from_the_assets() -> None:
    metadata = byte_level_metadata()
    assert Tokenizer.from_assets(text_assets(metadata)).eos_ids == (2,)
    named = TextAssets(
        tokenizer_json=None, gguf=metadata, chat_template=None, bos_token=None, eos_token="<|eot_id|>", eos_ids=()
    )
    assert Tokenizer.from_assets(named).eos_ids == (3,)


@pytest.mark.parametrize(
    ("assets", "word"),
    [
        (text_assets(tokenizer_json="{"), "tokenizer.json"),
        (text_assets(tokenizer_json='{"version": "9"}'), "tokenizer.json"),
        (text_assets(), "no tokenizer"),
        (
            TextAssets(
                tokenizer_json=None,
                gguf=byte_level_metadata(),
                chat_template=None,
                bos_token=None,
                eos_token="<nope>",
                eos_ids=(),
            ),
            "'<nope>'",
        ),
    ],
)
def test_a_broken_tokenizer_is_refused_in_one_sentence(assets: TextAssets, word: str) -> None:
    with pytest.raises(ModelError) as caught:
        Tokenizer.from_assets(assets)
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("make", [byte_level_tokenizer, sentencepiece_tokenizer])
def test_a_batch_of_one_gives_the_ids_of_a_single_encoding(make: Any) -> None:
    tokenizer: Tokenizer = make()
    name = list(tokenizer.special_tokens)[2]
    guard = "\ufdd0"
    for text in [*TEXTS, *random_texts(), f"{name}a{name[0]}{guard}{name[1:]}{name}"]:
        expected = [
            backend.encode(text, add_special_tokens=False).ids
            for backend in (tokenizer._plain, tokenizer._backend, tokenizer._guarded_by(guard))
        ]
        given = [tokenizer.encode(text), tokenizer.encode_rendered(text), tokenizer.encode_rendered(text, guard=guard)]
        assert given == expected


def test_other_threads_go_on_while_a_long_text_is_encoded() -> None:
    tokenizer = byte_level_tokenizer()
    ticks, done = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks
    tokenizer.encode("the cat, the dog; " * 30_000)
    during = ticks - before
    done.set()
    thread.join()
    assert during >= 10


def test_no_token_is_longer_than_the_longest() -> None:
    for tokenizer in (byte_level_tokenizer(), sentencepiece_tokenizer()):
        pieces = [tokenizer.token_bytes(i).decode(errors="ignore") for i in range(tokenizer.vocab_size)]
        assert tokenizer.longest >= max(map(len, pieces))
