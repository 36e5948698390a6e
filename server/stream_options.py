"""How a client wants its reply delivered: the same for all completions."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """How a reply is delivered."""

    stream: bool = False
    include_usage: bool = False
    continuous_usage: bool = False


def read_stream_options(fields: Fields) -> StreamOptions:
    """`stream` and `stream_options`. Raises RequestError."""
    options = fields.child("stream_options") or Fields({}, "stream_options")
    return StreamOptions(
        stream=fields.boolean("stream") or False,
        include_usage=options.boolean("include_usage") or False,
        continuous_usage=options.boolean("continuous_usage_stats") or False,
    )
