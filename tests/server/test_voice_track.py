from __future__ import annotations

from typing import Any

from paceline.server.voice import NO_VOICE, Voice
from paceline.server.voice_track import VoiceTrack

NAMES = {"response_id": "r", "output_index": 0, "content_index": 0}


def delta(text: str, seq: int, item: str = "i") -> dict[str, Any]:
    return {
        **NAMES,
        "type": "response.output_text.delta",
        "item_id": item,
        "event_id": f"event_{seq}",
        "delta": text,
        "x_seq": seq,
    }


def done(item: str = "i") -> dict[str, Any]:
    return {**NAMES, "type": "response.output_text.done", "item_id": item, "event_id": "event_99", "text": ""}


def test_a_clause_follows_the_delta_that_completes_it() -> None:
    track = VoiceTrack(Voice(clauses=True))
    assert track.tell(delta("Hello", 1), 10) == [delta("Hello", 1)]
    assert track.tell(delta(".", 2), 20) == [delta(".", 2)]
    first, clause = track.tell(delta(" And", 3), 30.04)
    assert first == delta(" And", 3)
    assert clause == {
        "type": "x_response.clause",
        "event_id": "event_3_0",
        "response_id": "r",
        "item_id": "i",
        "index": 0,
        "start": 0,
        "end": 6,
        "text": "Hello.",
        "x_seq": 3,
        "t_ms": 30.0,
    }
    last, end = track.tell(done(), 40)
    assert end == done()
    assert (last["index"], last["start"], last["end"], last["text"], last["x_seq"]) == (1, 6, 10, " And", 3)
    assert last["event_id"] == "event_99_1"


def test_each_item_has_offsets_of_its_own() -> None:
    """Behind a call the text begins again, and clauses are counted on."""
    track = VoiceTrack(Voice(clauses=True, timestamps=True))
    track.tell(delta("One.", 1), 1)
    assert [event["type"] for event in track.tell(done(), 2)] == ["x_response.clause", "response.output_text.done"]
    (second,) = track.tell(delta("Two", 2, "j"), 3)
    assert second["x_timing"] == [{"text_end": 3, "t_ms": 3}]
    clause, _ = track.tell(done("j"), 4)
    assert (clause["item_id"], clause["index"], clause["start"], clause["text"]) == ("j", 1, 0, "Two")


def test_timings_are_of_text_so_far() -> None:
    track = VoiceTrack(Voice(timestamps=True))
    (first,) = track.tell(delta("a🙂", 1), 1.26)
    (second,) = track.tell(delta("b. ", 2), 2)
    assert first["x_timing"] == [{"text_end": 2, "t_ms": 1.3}]
    assert second["x_timing"] == [{"text_end": 5, "t_ms": 2}]


def test_other_events_and_other_clients_are_left_alone() -> None:
    call = {"type": "response.function_call_arguments.delta", "delta": "1. 2. ", "event_id": "e", "x_seq": 4}
    assert VoiceTrack(Voice(clauses=True, timestamps=True)).tell(call, 1) == [call]
    track = VoiceTrack(NO_VOICE)
    assert [track.tell(event, 1) for event in (delta("Hi. You", 1), done())] == [[delta("Hi. You", 1)], [done()]]
