"""A tokenizer from GGUF metadata: what `tokenizer.json` would have said, rebuilt from vocabulary, merges and scores.

Keys as in the GGUF specification (`tokenizer.ggml.*`). Pre-tokenizers are those of the models' own tokenizer.json.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors

from paceline.engine.errors import ModelError

_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 2, 3, 4, 5, 6  # tokenizer.ggml.token_type; 1 is normal
_SPACE = "▁"

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2 = _LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
_TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class _Split(NamedTuple):
    """How text is cut before merging."""

    pattern: str | None = None  # None: the GPT-2 pattern
    digits: bool = False  # every numeric character on its own, before the pattern is applied
    nfc: bool = False
    whole_first: bool = False  # a piece found in the vocabulary is taken as it is, merges or not

    def pre_tokenizer(self) -> pre_tokenizers.PreTokenizer:
        steps: list[pre_tokenizers.PreTokenizer] = []
        if self.digits:
            steps.append(pre_tokenizers.Digits(individual_digits=True))
        if self.pattern is not None:
            steps.append(pre_tokenizers.Split(Regex(self.pattern), behavior="isolated"))
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=self.pattern is None))
        return pre_tokenizers.Sequence(steps)


def _splits() -> Mapping[str, _Split]:
    llama3 = _Split(_LLAMA3, whole_first=True)
    qwen2 = _Split(_QWEN2, nfc=True)
    return {
        "default": _Split(),
        "gpt-2": _Split(),
        "smollm": _Split(digits=True),
        "llama-bpe": llama3,
        "llama3": llama3,
        "llama-v3": llama3,
        "qwen2": qwen2,
        "deepseek-r1-qwen": qwen2,
        "tekken": _Split(_TEKKEN, whole_first=True),
    }


def tokenizer_from_gguf(metadata: Mapping[str, Any]) -> tokenizers.Tokenizer:
    """Build the tokenizer a GGUF file describes.

    Raises ModelError, naming it, for a `tokenizer.ggml.model` or `tokenizer.ggml.pre` that is not supported, and for
    metadata that is incomplete or contradicts itself.
    """
    kind = metadata.get("tokenizer.ggml.model")
    builders = {"gpt2": _byte_level, "llama": _sentencepiece}
    if kind not in builders:
        raise ModelError(
            f"The GGUF file has a tokenizer of kind {kind!r}; supported are {', '.join(builders)}. "
            "Use a model folder with a tokenizer.json instead."
        )
    tokens = _array(metadata, "tokens")
    types = metadata.get("tokenizer.ggml.token_type") or [1] * len(tokens)
    if len(types) != len(tokens):
        raise ModelError(
            f"The GGUF file names {len(tokens)} tokens but {len(types)} token types; download the file again."
        )
    try:
        tokenizer = builders[kind](metadata, tokens, types)
    except ModelError:
        raise
    except Exception as error:  # the BPE model checks its merges against its vocabulary
        raise ModelError(f"The tokenizer in the GGUF file is broken ({error}); download the file again.") from error
    tokenizer.add_tokens(
        [
            AddedToken(token, special=type_ != _USER_DEFINED, normalized=False)
            for token, type_ in zip(tokens, types, strict=True)
            if type_ in (_UNKNOWN, _CONTROL, _USER_DEFINED)
        ]
    )
    bos = metadata.get("tokenizer.ggml.bos_token_id")
    if metadata.get("tokenizer.ggml.add_bos_token", kind == "llama") and bos is not None and bos < len(tokens):
        opening = [tokens[bos], "$A"]
        tokenizer.post_processor = processors.TemplateProcessing(opening, None, [(tokens[bos], int(bos))])
    return tokenizer


def _array(metadata: Mapping[str, Any], name: str) -> Sequence[Any]:
    values = metadata.get(f"tokenizer.ggml.{name}")
    if values is None or len(values) == 0:
        raise ModelError(
            f"The GGUF file has no tokenizer.ggml.{name}; use a file that carries its tokenizer, "
            "or a model folder with a tokenizer.json."
        )
    return values  # type: ignore[no-any-return]


def _merges(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for merge in _array(metadata, "merges"):
        left, space, right = merge.partition(" ")
        if not space:
            raise ModelError(f"The GGUF file has a merge of one part, {merge!r}; download the file again.")
        pairs.append((left, right))
    return pairs


def _byte_level(metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> tokenizers.Tokenizer:
    splits = _splits()
    name = metadata.get("tokenizer.ggml.pre", "default")
    if name not in splits:
        raise ModelError(
            f"The GGUF file has a pre-tokenizer {name!r}; supported are {', '.join(splits)}. "
            "Use a model folder with a tokenizer.json instead."
        )
    split = splits[name]
    vocab = {token: index for index, token in enumerate(tokens)}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, _merges(metadata), ignore_merges=split.whole_first))
    if split.nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = split.pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(metadata: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> tokenizers.Tokenizer:
    """Sentencepiece BPE: pieces with scores instead of merges, raw bytes for what no piece covers."""
    vocab = {token: index for index, token in enumerate(tokens)}
    if metadata.get("tokenizer.ggml.merges"):
        merges = _merges(metadata)
    else:
        merges = _merges_from_scores(tokens, _array(metadata, "scores"), types)
    unknown = next((token for token, type_ in zip(tokens, types, strict=True) if type_ == _UNKNOWN), None)
    tokenizer = tokenizers.Tokenizer(
        models.BPE(vocab, merges, unk_token=unknown, fuse_unk=True, byte_fallback=_BYTE in types)
    )
    prefix = bool(metadata.get("tokenizer.ggml.add_space_prefix", True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
        _SPACE, prepend_scheme="first" if prefix else "never", split=False
    )
    steps: list[decoders.Decoder] = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if prefix:
        steps.append(decoders.Strip(" ", 1, 0))
    tokenizer.decoder = decoders.Sequence(steps)
    return tokenizer


def _merges_from_scores(tokens: Sequence[str], scores: Sequence[float], types: Sequence[int]) -> list[tuple[str, str]]:
    """Every way to make a piece from two others, best piece first; of one score the longest left part first.

    Control, unknown, unused and byte tokens are no pieces: no text may merge into them.
    """
    if len(scores) != len(tokens):
        raise ModelError(f"The GGUF file names {len(tokens)} tokens but {len(scores)} scores; download the file again.")
    no_piece = (_UNKNOWN, _CONTROL, _UNUSED, _BYTE)
    rank = {token: index for index, token in enumerate(tokens) if types[index] not in no_piece}
    ways = chain.from_iterable(
        sorted(
            (rank[token[:cut]], rank[token[cut:]], index, cut)
            for cut in range(1, len(token))
            if token[:cut] in rank and token[cut:] in rank
        )
        for token, index in rank.items()
    )
    best = sorted(ways, key=lambda way: (-scores[way[2]], -way[3], way[3] - len(tokens[way[2]])))
    return [(tokens[left], tokens[right]) for left, right, _, _ in best]
