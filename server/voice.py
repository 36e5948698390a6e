"""What a voice loop asks for beside the text: where clauses end, and when text came. Opt-in, and never more text."""

from __future__ import annotations

from dataclasses import dataclass

from .clauses import Clause, Clauses
from .fields import Fields, JsonObject

_TEXT_DELTA = "response.output_text.delta"
_TEXT_DONE = "response.output_text.done"


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


class VoiceTrack:
    """The events of one response, with what `voice` asks for put in."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._item_id: str | None = None
        self._clauses = Clauses()
        self._index = 0  # of the next clause, over all items
        self._length = 0  # code points of the item's text
        self._seq = 0  # of the last delta

    def tell(self, event: JsonObject, t_ms: float) -> list[JsonObject]:
        """What to send for the session's next event, in order. t_ms: milliseconds since response.create."""
        t_ms = round(t_ms, 1)
        if event["type"] == _TEXT_DELTA:
            if event["item_id"] != self._item_id:
                self._item_id, self._clauses, self._length = event["item_id"], Clauses(), 0
            self._length += len(event["delta"])
            self._seq = event["x_seq"]
            if self._voice.timestamps:
                event = {**event, "x_timing": [{"text_end": self._length, "t_ms": t_ms}]}
            clauses = self._clauses.push(event["delta"]) if self._voice.clauses else []
            return [event, *self._told(clauses, event, t_ms)]
        if event["type"] == _TEXT_DONE and event["item_id"] == self._item_id:
            return [*self._told(self._clauses.close(), event, t_ms), event]
        return [event]

    def _told(self, clauses: list[Clause], cause: JsonObject, t_ms: float) -> list[JsonObject]:
        events = []
        for clause in clauses:
            events.append(
                {
                    "type": "x_response.clause",
                    "event_id": f"{cause['event_id']}_{self._index}",
                    "response_id": cause["response_id"],
                    "item_id": cause["item_id"],
                    "index": self._index,
                    "start": clause.start,
                    "end": clause.end,
                    "text": clause.text,
                    "x_seq": self._seq,
                    "t_ms": t_ms,
                }
            )
            self._index += 1
        return events
