"""The body of POST /v1/completions: raw text or token ids go on, without a chat template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .api_errors import not_supported
from .fields import Fields, describe, parse_object
from .parameters import Limits, Parameters, read_parameters
from .stream_options import StreamOptions, read_stream_options

DEFAULT_MAX_TOKENS = 16  # as OpenAI defines it
MAX_LOGPROBS = 5

Prompt = str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """n choices for each prompt: choice i of prompt p is the reply's choice p * n + i."""

    model: str | None
    prompts: tuple[Prompt, ...]
    parameters: Parameters
    n: int
    delivery: StreamOptions


def parse_text_request(data: bytes, limits: Limits, *, max_choices: int, max_replies: int) -> TextRequest:
    """max_replies: prompts times choices. Raises RequestError or ApiError, naming the field."""
    fields = Fields(parse_object(data, "The request body"))
    _refuse_unsupported(fields)
    n = fields.integer("n", low=1, high=max_choices) or 1
    best_of = fields.integer("best_of", low=1)
    if best_of is not None and best_of < n:
        fields.refuse("best_of", f"must be at least n, {n}, got {best_of}.")
    if best_of is not None and best_of > n:
        fields.refuse("best_of", f"above n, {n}, is not supported: ask for n replies and choose.", code="unsupported")
    prompts = read_prompts(fields, limits.vocab_size)
    if len(prompts) * n > max_replies:
        fields.refuse(
            "prompt", f"asks for {len(prompts)} × {n} replies, at most {max_replies} are made of one request."
        )
    parameters = read_parameters(_as_chat(fields), limits, Parameters())
    return TextRequest(
        model=fields.string("model"),
        prompts=prompts,
        parameters=replace(parameters, max_tokens=fields.integer("max_tokens", low=1) or DEFAULT_MAX_TOKENS),
        n=n,
        delivery=read_stream_options(fields),
    )


def _as_chat(fields: Fields) -> Fields:
    """The same with logprobs as chat completions spell them."""
    top = fields.integer("logprobs", low=0, high=MAX_LOGPROBS)
    return Fields({**fields.values, "logprobs": top is not None, "top_logprobs": top})


def _refuse_unsupported(fields: Fields) -> None:
    """What would change the reply and cannot be honoured is refused, never quietly dropped."""
    if fields.boolean("echo"):
        raise not_supported("echo", "Repeating the prompt")
    if fields.string("suffix"):
        raise not_supported("suffix", "Text after the completion")
    for key in ("tools", "functions"):
        if fields.array(key):
            raise not_supported(key, "Calling tools outside of /v1/chat/completions")


def read_prompts(fields: Fields, vocab_size: int) -> tuple[Prompt, ...]:
    """`prompt`: a text, token ids, or a list of either. Raises RequestError."""
    value = fields.values.get("prompt")
    if value is None or value == "" or value == []:
        fields.refuse("prompt", "is missing or empty; send a text or a list of token ids.")
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list):
        fields.refuse("prompt", f"must be a text, a list of token ids or a list of either, got {describe(value)}.")
    if not isinstance(value[0], str | list):
        return (read_token_ids(fields, "prompt", value, vocab_size),)
    return tuple(_one(fields, f"prompt[{i}]", entry, vocab_size) for i, entry in enumerate(value))


def _one(fields: Fields, key: str, value: Any, vocab_size: int) -> Prompt:
    if not isinstance(value, str | list):
        fields.refuse(key, f"must be a text or a list of token ids, got {describe(value)}.")
    if not value:
        fields.refuse(key, "is empty; send at least one token.")
    return value if isinstance(value, str) else read_token_ids(fields, key, value, vocab_size)


def read_token_ids(fields: Fields, key: str, value: Sequence[Any], vocab_size: int) -> tuple[int, ...]:
    """`value`, which is `key` of `fields`. Raises RequestError for what is no token id."""
    # A list may hold hundreds of thousands, and so it is looked at in a quarter of the time.
    if not (set(map(type, value)) <= {int} and 0 <= min(value, default=0) <= max(value, default=0) < vocab_size):
        i = next(i for i, token in enumerate(value) if type(token) is not int or not 0 <= token < vocab_size)
        fields.refuse(
            f"{key}[{i}]", f"must be a token id of this model, 0 to {vocab_size - 1}, got {describe(value[i])}."
        )
    return tuple(value)
