"""How text completions spell a choice: text, and logprobs as four lists."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.engine.request import TokenLogprob

from .chat_shape import LOWEST_LOGPROB
from .fields import JsonObject
from .reply_parts import Part, Words
from .text_decoder import TextDecoder
from .tokenizer import Tokenizer


class TextShape:
    """For one writer of one reply: it follows where in the text each token begins."""

    body_kind = chunk_kind = "text_completion"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._texts: dict[int, tuple[TextDecoder, int]] = {}  # choice -> its tokens' text so far, and how long that is

    def opening(self, parts: Sequence[Part]) -> list[JsonObject]:
        return []

    def deltas(self, parts: Sequence[Part]) -> list[JsonObject]:
        return [{"text": part.text} for part in parts if isinstance(part, Words)]

    def nothing(self) -> JsonObject:
        return {"text": ""}

    def blank(self) -> JsonObject:
        return {"text": ""}

    def whole(self, parts: Sequence[Part]) -> JsonObject:
        return {"text": "".join(part.text for part in parts if isinstance(part, Words))}

    def logprobs(self, index: int, entries: Sequence[TokenLogprob] | None) -> JsonObject | None:
        """`text_offset` counts code points of the completion; alternatives are by their text, the token itself among
        them."""
        if entries is None:
            return None
        decoder, offset = self._texts.get(index) or (self._tokenizer.decoder(), 0)
        offsets = []
        for entry in entries:
            offsets.append(offset)
            offset += len(decoder.push((entry.token,)))
        self._texts[index] = decoder, offset
        return {
            "tokens": [self._tokenizer.token_text(entry.token) for entry in entries],
            "token_logprobs": [max(entry.logprob, LOWEST_LOGPROB) for entry in entries],
            "top_logprobs": [self._alternatives(entry) for entry in entries],
            "text_offset": offsets,
        }

    def _alternatives(self, entry: TokenLogprob) -> JsonObject:
        out: JsonObject = {}
        for token, logprob in (*entry.top, (entry.token, entry.logprob)):  # two tokens may have one text: the likelier
            out.setdefault(self._tokenizer.token_text(token), max(logprob, LOWEST_LOGPROB))
        return out
