"""The body of POST /v1/chat/completions: checked field by field, unknown extras ignored, nulls taken as absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from .api_errors import ApiError, not_supported
from .fields import Fields, JsonObject, describe, parse_object
from .parameters import Limits, Parameters, read_parameters
from .stream_options import StreamOptions, read_stream_options
from .turns import template_call

ROLES = ("system", "developer", "user", "assistant", "tool")

# What OpenAI itself has replaced, and by what.
_OLDER = {"functions": "tools", "function_call": "tool_choice"}
_OLDER_IN_MESSAGES = {"function_call": "tool_calls"}
_NEVER = {"audio": "Audio", "web_search_options": "A search of the web"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    model: str | None
    messages: list[JsonObject]  # for the chat template: role and text content, `developer` turned into `system`
    parameters: Parameters
    n: int
    delivery: StreamOptions
    prefill_only: bool
    prediction: str  # what the client expects the reply to be like; "" for nothing


def parse_chat_request(data: bytes, limits: Limits, *, max_choices: int, max_messages: int) -> ChatRequest:
    """Raises RequestError or ApiError, naming the field."""
    fields = Fields(parse_object(data, "The request body"))
    _refuse_unsupported(fields)
    parameters = read_parameters(fields, limits, Parameters())
    tokens = [fields.integer(key, low=1) for key in ("max_tokens", "max_completion_tokens")]
    delivery = read_stream_options(fields)
    n = fields.integer("n", low=1, high=max_choices) or 1
    prediction = read_prediction(fields)
    prefill_only = fields.boolean("prefill_only") or False
    return ChatRequest(
        model=fields.string("model"),
        messages=read_messages(fields, max_messages),
        parameters=replace(parameters, max_tokens=tokens[1] if tokens[1] is not None else tokens[0]),
        n=1 if prefill_only else n,
        delivery=replace(delivery, include_usage=delivery.include_usage or prefill_only),
        prefill_only=prefill_only,
        prediction="" if prefill_only else prediction,
    )


def read_prediction(fields: Fields) -> str:
    """OpenAI's predicted output: {"type": "content", "content": text or text parts}."""
    prediction = fields.child("prediction")
    if prediction is None:
        return ""
    if prediction.choice("type", ("content",)) is None:
        prediction.refuse("type", "is missing; use content.")
    if not prediction.has("content"):
        prediction.refuse("content", "is missing; send the text you expect.")
    return read_content(prediction)


def _refuse_unsupported(fields: Fields) -> None:
    """What would change the reply and cannot be honoured yet is refused, never quietly dropped."""
    _refuse_older(fields, _OLDER)
    for key, what in _NEVER.items():
        if fields.values.get(key):
            raise not_supported(key, what)
    if any(modality != "text" for modality in fields.array("modalities") or []):
        raise not_supported("modalities", "Output other than text")


def _refuse_older(fields: Fields, names: Mapping[str, str]) -> None:
    for key, newer in names.items():
        if fields.values.get(key):
            name = fields.name(key)
            raise ApiError(400, f"{name} is an older form of {newer}; send that.", param=name, code="unsupported")


def read_messages(fields: Fields, max_messages: int) -> list[JsonObject]:
    """The conversation as a chat template takes it. Raises RequestError."""
    messages = fields.each("messages")
    if not messages:
        fields.refuse("messages", "must be a list with at least one message, such as a user's.")
    if len(messages) > max_messages:
        fields.refuse("messages", f"may hold at most {max_messages} messages, got {len(messages)}.")
    return [_read_message(message) for message in messages]


def _read_message(fields: Fields) -> JsonObject:
    role = fields.choice("role", ROLES)
    if role is None:
        fields.refuse("role", f"is missing; use one of {', '.join(ROLES)}.")
    _refuse_older(fields, _OLDER_IN_MESSAGES)
    if fields.has("audio"):
        raise not_supported(fields.name("audio"), "Audio")
    message: JsonObject = {"role": "system" if role == "developer" else role, "content": read_content(fields)}
    for key in ("name", "tool_call_id"):
        if (value := fields.string(key)) is not None:
            message[key] = value
    if calls := fields.each("tool_calls"):
        message["tool_calls"] = [_read_tool_call(call) for call in calls]
    return message


def read_content(fields: Fields, kinds: tuple[str, ...] = ("text",), key: str = "content") -> str:
    """`content`, or what else `key` names, as one text: a string, null, or text parts joined by newlines.

    Raises RequestError or ApiError.
    """
    content = fields.values.get(key)
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        fields.refuse(key, f"must be a string, null or a list of text parts, got {describe(content)}.")
    texts = []
    for part in fields.each(key):
        kind = part.string("type")
        if kind is None:
            part.refuse("type", f"is missing; use {' or '.join(kinds)}.")
        if kind not in kinds and "image" in kind:
            raise ApiError(
                400,
                f"Images are not supported by this model; send parts of type {kinds[0]!r} alone.",
                param=part.name("type"),
                code="unsupported",
            )
        if kind not in kinds:
            raise not_supported(part.name("type"), f"Content of type {kind[:40]!r}")
        text = part.string("text")
        if text is None:
            part.refuse("text", "is missing; a text part needs its text.")
        texts.append(text)
    return "\n".join(texts)


def _read_tool_call(call: Fields) -> Mapping[str, Any]:
    """Earlier tool calls pass through to the template."""
    function = call.child("function")
    if function is None or (name := function.string("name")) is None:
        call.refuse("function", "must be an object with a name.")
    return template_call(call.string("id"), name, function.string("arguments") or "{}")
