"""Grammars for tests of the engine: compiled over a vocabulary as small as the tiny models', and what follows them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tokenizers
from equality import requests_for
from numpy.typing import NDArray
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from paceline.engine.grammar import Grammar, Matcher
from paceline.engine.request import Request
from paceline.server.grammars import Grammars
from paceline.server.reply_format import ReplyFormat, lark_of
from paceline.server.tokenizer import Tokenizer

END = 0
_MERGES = (
    "t r",
    "tr u",
    "tru e",
    '" :',
    "n a",
    "m e",
    "na me",
    '{ "',
    "k i",
    "n d",
    "ki nd",
    "1 2",
    'e "',
    "a b",
    "Ġ Ġ",
)


def small_tokenizer() -> Tokenizer:
    """Byte-level, without most bytes: an end token, printable ASCII, the line break, and a few merged tokens."""
    letters = ["Ġ", "Ċ", *map(chr, range(0x21, 0x7F))]
    merges = [(left, right) for left, right in (merge.split() for merge in _MERGES)]
    tokens = ["<|end|>", *letters, *("".join(merge) for merge in merges)]
    backend = tokenizers.Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken("<|end|>", special=True)])
    return Tokenizer(backend, eos_ids=(END,))


def allowed(matcher: Matcher) -> list[int]:
    """Ids that its mask allows."""
    return list(map(int, np.flatnonzero(bits(matcher.mask()))))


def bits(mask: NDArray[np.uint32]) -> list[bool]:
    """One per id, a word after the other."""
    return [bool(word >> bit & 1) for word in map(int, mask) for bit in range(32)]


SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 4},
        "kind": {"enum": ["abc", "abd", "xyz"]},
        "sizes": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 99}, "maxItems": 2},
        "true": {"type": "boolean"},
    },
    "required": ["name", "kind", "sizes", "true"],
    "additionalProperties": False,
}


def _fits_schema(text: str) -> bool:
    value = json.loads(text)
    return (
        list(value) == ["name", "kind", "sizes", "true"]
        and len(value["name"]) <= 4
        and value["kind"] in ("abc", "abd", "xyz")
        and len(value["sizes"]) <= 2
        and all(type(size) is int and 0 <= size <= 99 for size in value["sizes"])
        and type(value["true"]) is bool
    )


# More ways to go on after "go" than the parser follows at once.
TOO_WIDE = 'start: "go" x\nx: ' + "|".join(f'/{i}/ "z"' for i in range(2100))

_REGEX = r"[a-z]{3,9}(, true){1,3}(: [0-9]{2}){0,2}\."
_LARK = 'start: sum "." \nsum: number | number (" + " | " * ") sum\nnumber: /[0-9]{1,3}/ | "(" number ")"'
FORMATS: Mapping[str, tuple[ReplyFormat, Callable[[str], bool]]] = {
    "schema": (ReplyFormat("json_schema", json.dumps(SCHEMA)), _fits_schema),
    "regex": (ReplyFormat("regex", _REGEX), lambda text: re.fullmatch(_REGEX, text) is not None),
    "object": (ReplyFormat("json_object"), lambda text: isinstance(json.loads(text), dict)),
    "lark": (ReplyFormat("grammar", _LARK), lambda text: re.fullmatch(r"[0-9+* ()]+\.", text) is not None),
}


class Formats:
    """Each of FORMATS over the small vocabulary; vocab_size: of the model."""

    def __init__(self, vocab_size: int) -> None:
        self.tokenizer = small_tokenizer()
        self._grammars = Grammars(self.tokenizer, vocab_size)

    def sampling(self, name: str) -> dict[str, object]:
        """What a request for it adds to its sampling."""
        return {"grammar": self.compile(lark_of(FORMATS[name][0])), "stop_ids": frozenset({END})}

    def compile(self, lark: str) -> Grammar:
        return self._grammars.compile(lark, "format")

    def requests(self, sampling: dict[str, object]) -> list[Request]:
        """One request of each format, whose id begins with its name, and one that is free to say anything."""
        requests = []
        names = [*FORMATS, ""]
        for name, request in zip(names, requests_for(sampling, count=len(names)), strict=True):
            more: dict[str, Any] = self.sampling(name) if name else {}
            changed = replace(request.sampling, **more)
            requests.append(replace(request, id=f"{name}-{request.id}", sampling=changed))
        return requests

    def assert_follows(self, name: str, tokens: Sequence[int], finish: str | None) -> None:
        """A whole reply has the form; one that was cut off could still have got it."""
        form, follows = FORMATS[name]
        if finish == "stop":
            assert tokens[-1] == END
            assert follows(self.tokenizer.decode(tokens)), self.tokenizer.decode(tokens)
        else:
            assert finish == "length"
            assert self.compile(lark_of(form)).matcher().fits(tokens) == len(tokens)
