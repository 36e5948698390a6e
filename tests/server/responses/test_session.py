"""A socket of the Responses API without a socket: lanes, chains, and every mistake."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from responses_api import LAST, REPLY, order_of, output_text
from responses_session import Driver, error_of, types

from paceline.server.api_errors import ApiError
from paceline.server.responses.lanes import MAX_RUNNING, MAX_WAITING
from paceline.server.responses.session import MAX_LANES


def test_one_response() -> None:
    driver = Driver()
    response = driver.create("hi", event_id="mine")
    driver.step(response, "Hello")
    driver.step(response, " you", "stop")
    assert order_of(driver.events) == REPLY
    assert [event["sequence_number"] for event in driver.events] == list(range(len(driver.events)))
    assert not any("stream_id" in event for event in driver.events)
    assert output_text(driver.last()) == "Hello you"
    assert driver.session.idle


def test_a_chain_stored_or_not() -> None:
    for store in (True, False):
        driver = Driver()
        first = driver.create("hi", store=store)
        driver.step(first, "Hello", "stop")
        second = driver.create("more", previous_response_id=first, store=store)
        assert driver.said == [("user", "hi"), ("assistant", "Hello"), ("user", "more")]
        driver.step(second, "Well", "length")
        assert (driver.store.find("", first) is not None) == store
        other = Driver(driver.store)
        if store:
            other.create("again", previous_response_id=second)
            assert other.said[-2:] == [("assistant", "Well"), ("user", "again")]
        else:
            error = error_of(other.say("response.create", input="again", previous_response_id=second))
            assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")


def test_a_lane_keeps_its_newest_response_alone() -> None:
    driver = Driver()
    first, other = driver.create("a", store=False), driver.create("b", store=False, stream_id="b")
    driver.step(first, "A", "stop")
    driver.step(other, "B", "stop")
    second = driver.create("c", store=False, previous_response_id=other)  # a fork from another lane
    driver.step(second, "C", "stop")
    error = error_of(driver.say("response.create", input="x", previous_response_id=first))
    assert error["code"] == "previous_response_not_found"
    driver.create("y", previous_response_id=other, stream_id="b")
    assert driver.said == [("user", "b"), ("assistant", "B"), ("user", "y")]


def test_lanes_are_remembered_up_to_a_number() -> None:
    driver = Driver()
    made = []
    for number in range(MAX_LANES + 1):
        made.append(driver.create("a", store=False, stream_id=str(number)))
        driver.step(made[-1], "A", "stop")
    assert error_of(driver.say("response.create", input="x", previous_response_id=made[0]))
    driver.create("x", previous_response_id=made[1])
    assert driver.said[0] == ("user", "a")


def test_lanes_are_remembered_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.server.responses.store.MAX_SOCKET_CHARS", 1000)
    driver = Driver()
    made = []
    for number, size in enumerate((400, 400, 5000)):
        made.append(driver.create("a" * size, store=False, stream_id=str(number)))
        driver.step(made[-1], "A", "stop")
    for gone in made[:2]:
        error = error_of(driver.say("response.create", input="x", previous_response_id=gone))
        assert error["code"] == "previous_response_not_found"
    driver.create("x", previous_response_id=made[2])  # the newest stays, whatever its size
    assert driver.said[0] == ("user", "a" * 5000)


def test_input_that_waits_is_kept_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.server.responses.store.MAX_SOCKET_CHARS", 1000)
    driver = Driver()
    events = []
    for lane in "ab":
        response = driver.create("hi", store=False, stream_id=lane)
        driver.step(response, "{")
        driver.say("response.steer", previous_response_id=response, input="x" * 600)
        events += driver.step(response, "}", "stop")
    (failed,) = [event for event in events if event["type"] == "response.steer.failed"]
    assert failed["steer"]["input"] == "x" * 600


def test_first_in_first_out_within_a_lane_and_side_by_side_across() -> None:
    driver = Driver()
    for number, lane in enumerate(("a", "a", "b", "a")):
        driver.say("response.create", input=str(number), stream_id=lane)
    running = [begin.response_id for begin in driver.begun]
    assert [begin.items[0].text for begin in driver.begun] == ["0", "2"]  # type: ignore[union-attr]
    driver.step(running[1], "B")
    driver.step(running[0], "A", "stop")
    assert driver.begun[-1].items[0].text == "1"  # type: ignore[union-attr]
    lanes = {event["stream_id"] for event in driver.events if "B" in str(event.get("delta"))}
    assert lanes == {"b"}
    driver.step(driver.begun[-1].response_id, "A", "stop")
    assert driver.begun[-1].items[0].text == "3"  # type: ignore[union-attr]


def test_what_waits_may_go_on_from_what_runs() -> None:
    driver = Driver()
    first = driver.create("hi", store=False)
    driver.say("response.create", input="more", previous_response_id=first, store=False)
    driver.step(first, "Hello", "stop")
    assert driver.said == [("user", "hi"), ("assistant", "Hello"), ("user", "more")]


def test_lanes_and_queue_are_bounded() -> None:
    driver = Driver()
    for number in range(MAX_RUNNING + MAX_WAITING):
        driver.say("response.create", input="x", stream_id=str(number))
    assert len(driver.begun) == MAX_RUNNING
    error = error_of(driver.say("response.create", input="x", event_id="late"))
    assert (error["code"], driver.events[-1]["event_id"]) == ("too_many_responses", "late")
    driver.step(driver.begun[0].response_id, "A", "stop")
    assert len(driver.begun) == MAX_RUNNING + 1


def test_generate_false_and_prewarm_say_nothing() -> None:
    for asked in ({"generate": False}, {"prompt_cache_options": {"prewarm": True}}):
        driver = Driver()
        response = driver.create("hi", store=False, **asked)
        assert driver.begun[-1].request.generate is False
        driver.step(response, "", "prefilled", cached_tokens=3)
        assert types(driver.events) == ["response.created", "response.in_progress", "response.completed"]
        assert driver.last()["output"] == []
        assert driver.last()["usage"]["input_tokens_details"] == {"cached_tokens": 3, "cache_write_tokens": 4}
        driver.create("more", previous_response_id=response)
        assert driver.said == [("user", "hi"), ("user", "more")]


def test_a_server_that_stops_takes_no_more() -> None:
    driver = Driver()
    response = driver.create()
    driver.session.accepting = False
    assert error_of(driver.say("response.create", input="x"))["code"] == "shutting_down"
    driver.step(response, "A", "abort")
    assert driver.last()["status"] == "failed"
    assert driver.session.idle


def test_a_prompt_that_is_refused_leaves_no_response() -> None:
    driver = Driver()
    driver.hold = True
    response = driver.create("z", event_id="mine", stream_id="a")
    driver.say("response.create", input="next", stream_id="a")
    refusal = ApiError(400, "Too long.", code="context_length_exceeded", param="input")
    events = driver.take(driver.session.refuse(response, refusal))
    assert error_of(events)["code"] == "context_length_exceeded"
    assert (events[0]["event_id"], events[0]["stream_id"]) == ("mine", "a")
    assert driver.begun[-1].items[0].text == "next"  # type: ignore[union-attr]


def test_an_engine_that_fails() -> None:
    driver = Driver()
    response = driver.create()
    driver.step(response, "A")
    driver.step(response, "", "error", error="It broke.")
    assert driver.events[-1]["type"] == "response.failed"
    assert driver.last()["error"] == {"code": "server_error", "message": "It broke."}
    second = driver.create()
    driver.take(driver.session.fail(second, "Oh."))
    assert driver.last()["status"] == "failed"
    assert driver.take(driver.session.fail(second, "Oh.")) == []


# Mistakes

BAD: list[tuple[str, str | None, str | None]] = [
    ("no json", None, "invalid_json"),
    ("[]", None, "invalid_json"),
    ("{}", "type", None),
    ('{"type": 5}', "type", None),
    ('{"type": "response.fly"}', "type", "unknown_event"),
    ('{"type": "input_audio_buffer.append"}', "type", "unsupported"),
    ('{"type": "response.create"}', "input", None),
    ('{"type": "response.create", "input": 5}', "input", None),
    ('{"type": "response.create", "input": "a", "stream_id": 5}', "stream_id", None),
    ('{"type": "response.create", "input": "a", "stream_id": ""}', "stream_id", None),
    ('{"type": "response.create", "input": "a", "temperature": "x"}', "temperature", None),
    ('{"type": "response.create", "input": "a", "generate": 1}', "generate", None),
    ('{"type": "response.create", "input": "a", "prompt_cache_options": 1}', "prompt_cache_options", None),
    ('{"type": "response.create", "input": "a", "background": true}', "background", "unsupported"),
    ('{"type": "response.create", "input": "a", "event_id": 4}', "event_id", None),
    ('{"type": "response.cancel", "response_id": 7}', "response_id", None),
    ('{"type": "response.steer", "input": "x"}', "previous_response_id", None),
    ('{"type": "response.steer", "previous_response_id": "x"}', "input", None),
    ('{"type": "response.steer", "previous_response_id": "x", "input": 3}', "input", None),
]


@pytest.mark.parametrize(("message", "param", "code"), BAD)
def test_mistakes_are_errors_on_a_session_that_lives(message: str, param: str | None, code: str | None) -> None:
    driver = Driver()
    error = error_of(driver.take(driver.session.receive(message)))
    assert (error["param"], error["code"]) == (param, code)
    driver.step(driver.create(), "A", "stop")
    assert driver.last()["status"] == "completed"


ACTIONS = st.lists(
    st.sampled_from(
        [message for message, _, _ in BAD]
        + ["create a", "create b", "create", "chain", "cancel", "cancel a", "steer", "step", "call", "stop", "length"]
    ),
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(ACTIONS)
def test_whatever_happens_every_response_ends_once(actions: list[str]) -> None:
    driver = Driver()
    steps = itertools.cycle(("Hello", " you", "^hm^", ""))
    for action in actions:
        running = [b.response_id for b in driver.begun if driver.session._lanes.find(b.response_id) is not None]
        match action.split():
            case ["create", *lane]:
                driver.say("response.create", input="x", **({"stream_id": lane[0]} if lane else {}))
            case ["chain"]:
                known = driver.begun[-1].response_id if driver.begun else "none"
                driver.say("response.create", input="x", previous_response_id=known, store=False)
            case ["cancel", *lane]:
                driver.say("response.cancel", **({"stream_id": lane[0]} if lane else {}))
            case ["steer"]:
                driver.say("response.steer", previous_response_id=(running or ["none"])[0], input="y")
            case ["step"] | ["call"] | ["stop"] | ["length"]:
                finish: Any = action if action in ("stop", "length") else None
                if running:
                    driver.step(running[0], "{}" if action == "call" else next(steps), finish)
            case _:
                driver.take(driver.session.receive(action))
    while running := [b.response_id for b in driver.begun if driver.session._lanes.find(b.response_id) is not None]:
        driver.step(running[0], "!", "stop")
    assert driver.session.idle
    created = [event["response"]["id"] for event in driver.events if event["type"] == "response.created"]
    ended = [event["response"]["id"] for event in driver.events if event["type"] in LAST]
    assert sorted(created) == sorted(ended) == sorted(set(ended)) == sorted(b.response_id for b in driver.begun)
    assert json.loads(json.dumps(driver.events)) == driver.events
