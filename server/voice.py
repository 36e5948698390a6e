"""What a voice loop may ask for beside the text."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import Fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """All off by default."""

    clauses: bool = False  # an event for each clause, as soon as its end is certain
    pace: bool = False  # text of one step is spread over the time to the next
    timestamps: bool = False  # when each piece of text came


NO_VOICE = Voice()


def read_voice(fields: Fields, base: Voice) -> Voice:
    """`base` with what `voice` in a session or response object changes. Raises RequestError, naming the field."""
    asked = fields.child("voice")
    if asked is None:
        return base

    def flag(key: str, known: bool) -> bool:
        value = asked.boolean(key)
        return known if value is None else value

    return Voice(
        clauses=flag("clauses", base.clauses),
        pace=flag("pace", base.pace),
        timestamps=flag("timestamps", base.timestamps),
    )
