"""Small tokenizers, trained on the spot, of each kind the server reads, and a corpus to try them on."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from paceline.engine.model.checkpoint import TextAssets
from paceline.server.tokenizer import Tokenizer

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)

TEXTS = (
    "",
    " ",
    "Hello, world! It's the cat's dog; they're here, I'LL say, we'd've.",
    "  two leading and trailing spaces  ",
    "tabs\tand\t\tnewlines\n\n\n  indented\r\n\r\nWindows   \n",
    "def f(x):\n    return {'a': [1, 22, 333], \"b\": x**2 - 0x1F}  # comment\n\n\tif x != y: pass",
    "12345 3.14159  1,000,000 7th   2024-05-06 ²³ ½ Ⅳ ٣٤٥ 一二三",
    "日本語のテキスト、漢字とかな。中文测试：你好，世界！한국어 문장입니다.",
    "emoji 😀👍🏽 family 👨‍👩‍👧‍👦 flag 🇪🇺 heart ❤️ keycap 1️⃣",
    "Příliš žluťoučký kůň úpěl ďábelské ódy; naïve café (de\u0301compose\u0301) ﬁne",
    "Привет, мир! שלום עולם مرحبا بالعالم नमस्ते ไทย",
    "<b>html</b> &amp; ${dollar} `tick` ~/path/to/file.txt C:\\dir http://example.org/?q=a+b#c",
    "zero\u200bwidth\u00a0nbsp\u2028line \ufeffbom \x00nul \x1besc \ufffd",
    "a  1 b   23\n 4\t5     six",
    "▁sentencepiece▁mark ▁ <0x41> <unk",
    "x" * 200 + " " * 50 + "\n" * 20,
)


def random_texts(count: int = 60, seed: int = 7) -> list[str]:
    """Random bytes read as text, and random code points of every plane."""
    rng = random.Random(seed)
    texts = [rng.randbytes(rng.randrange(1, 80)).decode(errors="replace") for _ in range(count)]
    planes = ((0x20, 0x7F), (0xA0, 0x250), (0x370, 0x600), (0x4E00, 0x4F00), (0x1F300, 0x1F650))
    for _ in range(count):
        picks = (rng.choice(planes) for _ in range(rng.randrange(1, 40)))
        texts.append("".join(chr(rng.randrange(*plane)) for plane in picks))
    return texts


def byte_level_metadata(pre: str | None = "smollm", *, size: int = 600) -> dict[str, Any]:
    """GGUF metadata of a byte-level vocabulary: control tokens first, one user-defined token last."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator(
        TEXTS * 2, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False)
    )
    vocab, merges = _trained(trained)
    control = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|eot_id|>"]
    tokens = [*control, *vocab, "<think>", "</think>"]
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [CONTROL] * 4 + [NORMAL] * len(vocab) + [USER_DEFINED] * 2,
        "tokenizer.ggml.merges": [" ".join(merge) for merge in merges],
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.bos_token_id": 1,
    }
    if pre is not None:
        metadata["tokenizer.ggml.pre"] = pre
    return metadata


def sentencepiece_metadata(*, prefix: bool | None = None, size: int = 500) -> dict[str, Any]:
    """GGUF metadata of a sentencepiece vocabulary: byte tokens, then pieces whose scores fall with their rank."""
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first")
    trained.train_from_iterator(TEXTS * 2, trainers.BpeTrainer(vocab_size=size, show_progress=False))
    vocab, merges = _trained(trained)
    merged = ["".join(merge) for merge in merges]
    letters = [token for token in vocab if token not in set(merged)]
    raw = [f"<0x{byte:02X}>" for byte in range(256)]
    pieces = [*dict.fromkeys(merged), *letters]
    metadata: dict[str, Any] = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *raw, *pieces],
        "tokenizer.ggml.scores": [0.0] * (3 + 256) + [-float(rank) for rank in range(len(pieces))],
        "tokenizer.ggml.token_type": [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces),
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.bos_token_id": 1,
    }
    if prefix is not None:
        metadata["tokenizer.ggml.add_space_prefix"] = prefix
    return metadata


def _trained(tokenizer: tokenizers.Tokenizer) -> tuple[list[str], list[tuple[str, str]]]:
    model = json.loads(tokenizer.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].__getitem__), [tuple(merge) for merge in model["merges"]]


def text_assets(
    metadata: Mapping[str, Any] | None = None, *, tokenizer_json: str | None = None, template: str | None = None
) -> TextAssets:
    """Assets as a checkpoint would report them."""
    tokens = () if metadata is None else metadata["tokenizer.ggml.tokens"]
    bos, eos = (tokens[1], tokens[2]) if tokens else (None, None)
    return TextAssets(
        tokenizer_json=tokenizer_json,
        gguf=metadata,
        chat_template=template,
        bos_token=bos,
        eos_token=eos,
        eos_ids=(2,) if tokens else (),
    )


def byte_level_tokenizer() -> Tokenizer:
    return Tokenizer.from_assets(text_assets(byte_level_metadata()))


def sentencepiece_tokenizer(*, prefix: bool | None = None) -> Tokenizer:
    return Tokenizer.from_assets(text_assets(sentencepiece_metadata(prefix=prefix)))


def whole_text(tokenizer: Tokenizer, ids: Iterable[int]) -> str:
    """The text of tokens with the names of special ones, which `Tokenizer.decode` leaves out."""
    return b"".join(tokenizer.token_bytes(id_) or tokenizer.token_text(id_).encode() for id_ in ids).decode()
