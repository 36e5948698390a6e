"""Log-probabilities of tokens as clients get them, the same in every protocol that tells them."""

from __future__ import annotations

from typing import Protocol

from paceline.engine.request import TokenLogprob

from .fields import JsonObject

LOWEST_LOGPROB = -9999.0  # JSON has no infinity; clients know this value


class TokenNames(Protocol):
    """What is asked of a tokenizer."""

    def token_text(self, token: int) -> str: ...
    def token_bytes(self, token: int) -> bytes: ...


def logprob_body(names: TokenNames, entry: TokenLogprob) -> JsonObject:
    """One token of a reply with its likeliest alternatives."""
    top = [_token(names, token, value) for token, value in entry.top]
    return {**_token(names, entry.token, entry.logprob), "top_logprobs": top}


def _token(names: TokenNames, token: int, logprob: float) -> JsonObject:
    return {
        "token": names.token_text(token),
        "logprob": max(logprob, LOWEST_LOGPROB),
        "bytes": list(names.token_bytes(token)),
    }
