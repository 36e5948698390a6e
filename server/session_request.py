"""What client events of a realtime session carry: settings, metadata, and whether an event is known at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from .api_errors import ApiError, not_supported
from .fields import Fields, JsonObject, describe
from .parameters import Limits, Parameters, read_parameters
from .voice import read_voice

H = TypeVar("H")

# Events of the Realtime API that cannot be honoured: said so by name.
_UNSUPPORTED = (
    "input_audio_buffer.",
    "output_audio_buffer.",
    "transcription_session.",
)

_AUDIO = (
    "audio",
    "speed",
    "turn_detection",
    "input_audio_format",
    "output_audio_format",
    "input_audio_transcription",
    "input_audio_noise_reduction",
)


def handler_of(fields: Fields, handlers: Mapping[str, H]) -> H:
    """Whose turn a client's message is, by its type. Raises RequestError or ApiError."""
    kind = fields.string("type")
    if kind is None:
        fields.refuse("type", "is missing; every message needs one, such as response.create.")
    handler = handlers.get(kind)
    if handler is None:
        raise unknown_event(kind, handlers)
    return handler


def unknown_event(kind: str, known: Iterable[str]) -> ApiError:
    """The refusal of an event without a handler."""
    if kind.startswith(_UNSUPPORTED):
        return ApiError(400, f"The event {kind[:80]!r} is not supported here.", param="type", code="unsupported")
    return ApiError(
        400,
        f"The event {kind[:80]!r} is not known; use one of {', '.join(known)}.",
        param="type",
        code="unknown_event",
    )


def read_settings(fields: Fields, limits: Limits, base: Parameters) -> Parameters:
    """`base` with what a session or response object changes, extensions included. Raises RequestError or ApiError."""
    for key in _AUDIO:
        if fields.has(key):
            raise not_supported(fields.name(key), "Audio")
    if isinstance(fields.values.get("voice"), str):  # the name of one
        raise not_supported(fields.name("voice"), "Audio")
    for key in ("output_modalities", "modalities"):  # the second is the name of the beta
        modalities = fields.array(key)
        if modalities is not None and modalities != ["text"]:
            raise not_supported(fields.name(key), 'Output other than ["text"]')
    for key in ("max_response_output_tokens", "max_output_tokens"):  # the first is the name of the beta
        if fields.has(key):
            base = replace(base, max_tokens=_read_limit(fields, key))
    return replace(read_parameters(fields, limits, base), voice=read_voice(fields, base.voice))


def _read_limit(fields: Fields, key: str) -> int | None:
    limit = fields.values[key]
    if limit == "inf":
        return None
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        fields.refuse(key, f'must be a positive integer or "inf", got {describe(limit)}.')
    return limit


def read_metadata(fields: Fields) -> JsonObject | None:
    """Up to 16 short strings that come back with the response. Raises RequestError."""
    metadata = fields.child("metadata")
    if metadata is None:
        return None
    pairs = metadata.values
    if len(pairs) > 16 or any(len(k) > 64 or not isinstance(v, str) or len(v) > 512 for k, v in pairs.items()):
        fields.refuse("metadata", "may hold 16 pairs, with keys up to 64 and string values up to 512 characters.")
    return dict(pairs)
