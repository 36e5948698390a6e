"""The JSON shapes of chat completions: one place for what `id`, `created` and `model` are on every chunk."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.engine.request import TokenLogprob

from .fields import JsonObject
from .tokenizer import Tokenizer

LOWEST_LOGPROB = -9999.0  # JSON has no infinity; clients know this value


class ChatWire:
    """Builds the bodies of one chat completion."""

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the field's name on the wire
        created: int,
        model: str,
        fingerprint: str,
        tokenizer: Tokenizer,
    ) -> None:
        self._tokenizer = tokenizer
        self._head: JsonObject = {"id": id, "created": created, "model": model, "system_fingerprint": fingerprint}

    def completion(
        self, choices: Sequence[JsonObject], usage: JsonObject, metrics: JsonObject, seed: int | None
    ) -> JsonObject:
        return {
            **self._head,
            "object": "chat.completion",
            "choices": list(choices),
            "usage": usage,
            "metrics": metrics,
            "seed": seed,
        }

    def choice(self, index: int, text: str, finish: str, logprobs: Sequence[TokenLogprob] | None) -> JsonObject:
        return {
            "index": index,
            "message": {"role": "assistant", "content": text, "refusal": None},
            "logprobs": self._logprobs(logprobs),
            "finish_reason": finish,
        }

    def chunk(
        self,
        index: int,
        delta: JsonObject,
        *,
        finish: str | None = None,
        logprobs: Sequence[TokenLogprob] | None = None,
        extra: JsonObject | None = None,
    ) -> JsonObject:
        choice = {"index": index, "delta": delta, "logprobs": self._logprobs(logprobs), "finish_reason": finish}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice], **(extra or {})}

    def usage_chunk(self, usage: JsonObject, extra: JsonObject | None = None) -> JsonObject:
        return {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage, **(extra or {})}

    def _logprobs(self, entries: Sequence[TokenLogprob] | None) -> JsonObject | None:
        if entries is None:
            return None
        return {
            "content": [
                {
                    **self._token(entry.token, entry.logprob),
                    "top_logprobs": [self._token(token, value) for token, value in entry.top],
                }
                for entry in entries
            ],
            "refusal": None,
        }

    def _token(self, token: int, logprob: float) -> JsonObject:
        return {
            "token": self._tokenizer.token_text(token),
            "logprob": max(logprob, LOWEST_LOGPROB),
            "bytes": list(self._tokenizer.token_bytes(token)),
        }
