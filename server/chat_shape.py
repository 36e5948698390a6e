"""How chat completions spell a choice: messages, deltas, logprobs."""

from __future__ import annotations

from collections.abc import Sequence

from paceline.engine.request import TokenLogprob

from .fields import JsonObject
from .reply_parts import CallArguments, CallBegin, Part, Thought, Words
from .tokenizer import Tokenizer

LOWEST_LOGPROB = -9999.0  # JSON has no infinity; clients know this value


class ChatShape:
    """`content` for words, `reasoning_content` for thoughts, `tool_calls` for calls."""

    body_kind = "chat.completion"
    chunk_kind = "chat.completion.chunk"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def opening(self, parts: Sequence[Part]) -> list[JsonObject]:
        """The role. Its content is null where something else than words comes first, as in OpenAI's own streams."""
        worded = not parts or isinstance(parts[0], Words)
        return [{"delta": {"role": "assistant", "content": "" if worded else None}}]

    def deltas(self, parts: Sequence[Part]) -> list[JsonObject]:
        return [{"delta": _delta(part)} for part in parts]

    def nothing(self) -> JsonObject:
        return {"delta": {}}

    def blank(self) -> JsonObject:
        return {"delta": {"content": ""}}

    def whole(self, parts: Sequence[Part]) -> JsonObject:
        words = "".join(part.text for part in parts if isinstance(part, Words))
        thoughts = "".join(part.text for part in parts if isinstance(part, Thought))
        calls: dict[int, JsonObject] = {}
        for part in parts:
            if isinstance(part, CallBegin):
                calls[part.index] = _call(part)
            elif isinstance(part, CallArguments):
                calls[part.index]["function"]["arguments"] += part.text
        message: JsonObject = {"role": "assistant", "content": words if words or not calls else None, "refusal": None}
        if thoughts:
            message["reasoning_content"] = thoughts
        if calls:
            message["tool_calls"] = list(calls.values())
        return {"message": message}

    def logprobs(self, index: int, entries: Sequence[TokenLogprob] | None) -> JsonObject | None:
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


def _delta(part: Part) -> JsonObject:
    match part:
        case Words(text):
            return {"content": text}
        case Thought(text):
            return {"reasoning_content": text}
        case CallBegin(index):
            return {"tool_calls": [{"index": index, **_call(part)}]}
        case CallArguments(index, text):
            return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _call(part: CallBegin) -> JsonObject:
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": ""}}
