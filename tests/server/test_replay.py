from __future__ import annotations

from typing import Any

import pytest
from token_replies import TOKENIZER, letters
from traces import chain_trace

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.fields import Fields
from paceline.server.outbox import Outbox
from paceline.server.replay import Replay, Resume, read_resume
from paceline.server.step_trace import step_body


def delta(seq: int) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "delta": "x", "x_seq": seq}


CREATED, CLAUSE, DONE = {"type": "response.created"}, {"type": "x_response.clause", "x_seq": 2}, {"type": "done"}
EVENTS = [CREATED, delta(1), delta(2), CLAUSE, delta(3), DONE]


def filled(max_events: int = 100, max_bytes: int = 10_000) -> Replay:
    replay = Replay(max_events, max_bytes)
    for event in EVENTS:
        replay.put(event)
    return replay


def test_what_came_after_a_delta() -> None:
    """A clause names the delta that completed it, and comes after it."""
    replay = filled()
    assert replay.after(0) == EVENTS
    assert replay.after(1) == EVENTS[2:]
    assert replay.after(2) == EVENTS[3:]
    assert replay.after(3) == EVENTS[5:]


@pytest.mark.parametrize("waited", range(1, 9))
async def test_what_was_merged_on_its_way_is_resumed_to_the_letter(waited: int) -> None:
    """The same events go into what is kept and into a slow client's outbox, of which only the beginning arrives."""
    replay, outbox = Replay(100, 10_000), Outbox(100)
    arrived: list[dict[str, Any]] = []
    counts = {"drafted": 1, "accepted": 1, "emitted": 1}
    for seq, letter in enumerate("abcdefgh", 1):
        event = {**delta(seq), "delta": letter, "response_id": "r", "x_spec": counts}
        replay.put(event)
        outbox.put(event)
        if seq % 3 == 0 or seq == waited:
            arrived.append(await outbox.get())
        if seq == waited:
            break
    for seq in range(waited + 1, 9):
        replay.put({**delta(seq), "delta": "abcdefgh"[seq - 1], "response_id": "r", "x_spec": counts})
    both = arrived + replay.after(arrived[-1]["x_seq"])
    assert "".join(event["delta"] for event in both) == "abcdefgh"
    assert sum(event["x_spec"]["emitted"] for event in both) == 8


def test_trees_of_a_trace_are_not_kept() -> None:
    """A step with a tree is larger than the ring, and one without is not."""
    step = step_body(chain_trace(letters("x" * 60), ["suffix"] * 59), 1.0, "best", TOKENIZER) | {"tokens": []}
    events = [delta(seq) | {"x_spec": {"emitted": 1, "steps": [step]}} for seq in (1, 2)]
    replay = Replay(100, 1000)
    for event in events:
        replay.put(event)
    bare = {"emitted": 1, "steps": [step | {"tree": None}]}
    assert replay.after(0) == [delta(seq) | {"x_spec": bare} for seq in (1, 2)]
    assert events[0]["x_spec"]["steps"] == [step]  # the socket has it


@pytest.mark.parametrize(
    ("kept", "complete_after"),
    [(6, {0, 1, 2, 3}), (5, {1, 2, 3}), (4, {1, 2, 3}), (3, {2, 3}), (2, {3}), (1, {3}), (0, set())],
)
def test_what_is_forgotten_is_gone(kept: int, complete_after: set[int]) -> None:
    replay = filled(max_events=kept)
    for seq in range(4):
        if seq in complete_after:
            index = 0 if seq == 0 else EVENTS.index(delta(seq)) + 1
            assert replay.after(seq) == EVENTS[index:]
        else:
            with pytest.raises(ApiError) as caught:
                replay.after(seq)
            assert caught.value.code == "resume_gone"


def test_bytes_are_bounded_too() -> None:
    replay = filled(max_bytes=100)
    assert replay.after(3) == [DONE]
    with pytest.raises(ApiError):
        replay.after(1)


def test_a_delta_that_has_not_been() -> None:
    with pytest.raises(RequestError, match="last delta so far is 3") as caught:
        filled().after(4)
    assert caught.value.param == "starting_after"


def test_reading() -> None:
    assert read_resume(Fields({"response_id": "r"})) == Resume("r", 0)
    assert read_resume(Fields({"response_id": "r", "starting_after": 7})) == Resume("r", 7)
    wrongs: list[dict[str, Any]] = [{}, {"response_id": 5}, {"response_id": "r", "starting_after": -1}]
    for wrong in wrongs:
        with pytest.raises(RequestError):
            read_resume(Fields(wrong))
