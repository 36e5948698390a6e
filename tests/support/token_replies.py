"""Replies made of chosen tokens, and the committers that turn them into text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vocabularies import byte_level_tokenizer

from paceline.engine.request import Delta, Finish, TokenLogprob
from paceline.server.committer import Committer
from paceline.server.reply_parts import Part, PlainReader
from paceline.server.stop_strings import StopStrings
from paceline.server.tokenizer import Tokenizer

TOKENIZER = byte_level_tokenizer()
EOS = 2
BYTES = {TOKENIZER.token_bytes(i)[0]: i for i in range(TOKENIZER.vocab_size) if len(TOKENIZER.token_bytes(i)) == 1}


def letters(text: str) -> list[int]:
    """One token for each byte."""
    return [BYTES[byte] for byte in text.encode()]


def delta(tokens: Iterable[int], finish: Finish | None = None, **fields: Any) -> Delta:
    return Delta(request_id="r", tokens=tuple(tokens), finish=finish, **fields)


def committer(
    stop: Sequence[str] = (), *, tokenizer: Tokenizer = TOKENIZER, stop_id: int = EOS, **options: Any
) -> Committer:
    return Committer(tokenizer, stops=StopStrings(stop), stop_ids={stop_id}, prompt_tokens=7, **options)


def logprobs(tokens: Iterable[int]) -> tuple[TokenLogprob, ...]:
    return tuple(TokenLogprob(token, -float(index), ((token, -0.5),)) for index, token in enumerate(tokens))


class BrokenReader(PlainReader):
    """Raises at every character like `mark`, and at the end of a reply that had one."""

    def __init__(self, mark: str = "!") -> None:
        self._mark = mark
        self._broken = False

    def push(self, text: str) -> list[Part]:
        self._broken = self._broken or self._mark in text
        return self._checked(super().push(text))

    def close(self) -> list[Part]:
        return self._checked(super().close())

    def _checked(self, parts: list[Part]) -> list[Part]:
        if self._broken:
            raise ValueError("the reader broke")
        return parts
