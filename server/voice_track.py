"""What a voice loop is told beside the text: where clauses end, and when text came."""

from __future__ import annotations

from .clauses import Clause, Clauses
from .fields import JsonObject
from .response_output import DELTA, TEXT
from .voice import Voice


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
        if event["type"] == DELTA:
            if event["item_id"] != self._item_id:
                self._item_id, self._clauses, self._length = event["item_id"], Clauses(), 0
            self._length += len(event["delta"])
            self._seq = event["x_seq"]
            if self._voice.timestamps:
                event = {**event, "x_timing": [{"text_end": self._length, "t_ms": t_ms}]}
            clauses = self._clauses.push(event["delta"]) if self._voice.clauses else []
            return [event, *self._told(clauses, event, t_ms)]
        if event["type"] == f"{TEXT}.done" and event["item_id"] == self._item_id:
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
