"""Token bytes to text, incrementally: one definition of `decode` for streamed and buffered replies alike."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from paceline.engine.errors import ModelError

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def _byte_alphabet() -> Mapping[str, int]:
    """The printable spelling of each byte in byte-level BPE (Radford et al. 2019, GPT-2): visible Latin-1 stands for
    itself, the other bytes follow from U+0100 in ascending order."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    alphabet = {chr(byte): byte for byte in visible}
    hidden = [byte for byte in range(256) if byte not in visible]
    alphabet.update({chr(0x100 + rank): byte for rank, byte in enumerate(hidden)})
    return MappingProxyType(alphabet)


_BYTE_ALPHABET = _byte_alphabet()


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a vocabulary spells bytes: byte-level letters, or sentencepiece marks with byte fallback."""

    byte_level: bool
    replacements: tuple[tuple[str, str], ...] = ()  # sentencepiece: ("▁", " ")
    byte_fallback: bool = False  # "<0x0A>" is one byte
    strip: int = 0  # spaces dropped from the start of a whole text: the prefix sentencepiece adds to it

    @classmethod
    def from_decoder(cls, state: str | bytes) -> Spelling:
        """Read the `decoder` section of a tokenizer.json. Raises ModelError for a kind that is not supported."""
        root = json.loads(state)
        steps = root["decoders"] if root and root["type"] == "Sequence" else [root]
        names = [step["type"] if step else "none" for step in steps]
        if "ByteLevel" in names and set(names) <= {"ByteLevel", "Fuse"}:
            return cls(byte_level=True)
        replacements: list[tuple[str, str]] = []
        strip = 0
        for step in steps:
            if not _supported(step):
                raise ModelError(
                    f"The tokenizer's decoder {'+'.join(names)} is not supported; "
                    "use a model with a ByteLevel decoder or a sentencepiece one (Replace, ByteFallback, Fuse, Strip)."
                )
            if step["type"] == "Replace":
                replacements.append((step["pattern"]["String"], step["content"]))
            elif step["type"] == "Strip":
                strip += step["start"]
        return cls(False, tuple(replacements), "ByteFallback" in names, strip)

    def bytes_of(self, token: str) -> bytes:
        """The bytes a token stands for, before the leading space of the whole text is dropped."""
        if self.byte_level:
            try:
                return bytes([_BYTE_ALPHABET[letter] for letter in token])
            except KeyError:  # an added token, written as it is
                return token.encode()
        if self.byte_fallback and (match := _BYTE_TOKEN.fullmatch(token)):
            return bytes([int(match[1], 16)])
        for old, new in self.replacements:
            token = token.replace(old, new)
        return token.encode()


def _supported(step: Mapping[str, Any] | None) -> bool:
    match step:
        case {"type": "ByteFallback" | "Fuse"}:
            return True
        case {"type": "Replace", "pattern": {"String": str()}}:
            return True
        case {"type": "Strip", "content": " ", "stop": 0}:
            return True
    return False


class TextDecoder:
    """Turns a token stream into text: O(total bytes), and never a part of a character.

    The text of a stream is its tokens' bytes read as UTF-8, each maximal invalid part as one U+FFFD (Unicode 3.9, and
    what byte-level tokenizers do). An unfinished character is held back until it is complete, broken or flushed.
    `Tokenizer.decode` runs the same code, so joined pieces plus `flush()` equal it for every token stream.

    A special token in `shown` comes out as the character given for it, a lone surrogate (see `Shown`): bytes read as
    UTF-8 never give one, so nothing that is written out in letters can be taken for the token.
    """

    def __init__(
        self,
        token_bytes: Callable[[int], bytes],
        *,
        strip: int = 0,
        shown: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._token_bytes = token_bytes
        self._shown = shown
        self._strip = strip
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Iterable[int]) -> str:
        """The text that the stream so far determines and that was not returned before."""
        if self._shown:
            return "".join(self._shown.get(id_) or self._text((id_,)) for id_ in ids)
        return self._text(ids)

    def flush(self) -> str:
        """End of the stream: U+FFFD if it stops inside a character, else ""."""
        return self._trim(self._utf8.decode(b"", True))

    def _text(self, ids: Iterable[int]) -> str:
        return self._trim(self._utf8.decode(b"".join(map(self._token_bytes, ids))))

    def _trim(self, text: str) -> str:
        while self._strip and text:
            if text[0] == " ":
                text = text[1:]
                self._strip -= 1
            else:
                self._strip = 0
        return text


class Shown:
    """Which special tokens a reader of replies wants to see, and the character that stands for each.

    The characters are lone surrogates: text never holds one, neither a model's nor a client's (JSON with one is
    refused). They are for readers alone; `without_shown` takes them out of what is told.
    """

    def __init__(self, specials: Mapping[str, int]) -> None:
        self._specials = specials
        self._characters: dict[int, str] = {}

    def spelling(self, name: str) -> str:
        """How the marker `name` reads in a reply: as it is written, or as one character where it is a special token."""
        id_ = self._specials.get(name)
        if id_ is None:
            return name
        return self._characters.setdefault(id_, chr(_FIRST_SHOWN + len(self._characters)))

    @property
    def characters(self) -> Mapping[int, str]:
        """For `TextDecoder`: token id to character, for the names asked for so far."""
        return MappingProxyType(self._characters)


_FIRST_SHOWN = 0xD800
_SHOWN = re.compile("[\ud800-\udfff]")


def without_shown(text: str) -> str:
    """Special tokens give no text."""
    return _SHOWN.sub("", text)
