"""What client events of a realtime session carry: settings, metadata, and whether an event is known at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from .api_errors import ApiError, not_supported
from .fields import Fields, JsonObject, describe
from .parameters import Limits, Parameters, read_parameters
from .voice import read_voice

# Events of the Realtime API, or of a later version of this server, that cannot be honoured: said so by name.
_UNSUPPORTED = (
    "input_audio_buffer.",
    "output_audio_buffer.",
    "transcription_session.",
    "conversation.item.truncate",
    "input_text.",
    "x_response.",
)


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
    for key in ("output_modalities", "modalities"):  # the second is the name of the beta
        modalities = fields.array(key)
        if modalities is not None and modalities != ["text"]:
            raise not_supported(fields.name(key), 'Output other than ["text"]')
    if fields.array("tools"):
        raise not_supported(fields.name("tools"), "Tool calling")
    limit = fields.values.get("max_output_tokens")
    if limit == "inf":
        base = replace(base, max_tokens=None)
    elif limit is not None:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            fields.refuse("max_output_tokens", f'must be a positive integer or "inf", got {describe(limit)}.')
        base = replace(base, max_tokens=limit)
    return replace(read_parameters(fields, limits, base), voice=read_voice(fields, base.voice))


def read_metadata(fields: Fields) -> JsonObject | None:
    """Up to 16 short strings that come back with the response. Raises RequestError."""
    metadata = fields.child("metadata")
    if metadata is None:
        return None
    pairs = metadata.values
    if len(pairs) > 16 or any(len(k) > 64 or not isinstance(v, str) or len(v) > 512 for k, v in pairs.items()):
        fields.refuse("metadata", "may hold 16 pairs, with keys up to 64 and string values up to 512 characters.")
    return dict(pairs)
