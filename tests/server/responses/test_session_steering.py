"""What a client of a Responses socket does to a running response: cancelling and steering it."""

from __future__ import annotations

from typing import Any

import pytest
from responses_api import output_text
from responses_session import Driver, error_of, types

from paceline.server.responses.items import Call, CallOutput, Message
from paceline.server.responses.steering import MAX_STEERS

# Cancelling


@pytest.mark.parametrize("by", ["response_id", "stream_id", "nothing"])
def test_cancel(by: str) -> None:
    driver = Driver()
    lane = {"stream_id": "a"} if by == "stream_id" else {}
    response = driver.create("hi", store=False, **lane)
    driver.step(response, "Hello")
    named = {"response_id": {"response_id": response}, "stream_id": lane, "nothing": {}}[by]
    events = driver.say("response.cancel", **named)
    assert driver.aborted == [response]
    assert types(events)[-1] == "response.incomplete"
    assert driver.last()["status"] == "cancelled"
    assert output_text(driver.last()) == "Hello"
    assert driver.step(response, " more") == []
    driver.create("go on", previous_response_id=response)
    assert driver.said == [("user", "hi"), ("assistant", "Hello"), ("user", "go on")]


def test_a_cancel_before_the_first_event() -> None:
    driver = Driver()
    driver.hold = True
    response = driver.create(store=False)
    events = driver.say("response.cancel")
    assert types(events) == ["response.created", "response.in_progress", "response.incomplete"]
    assert (events[-1]["response"]["status"], events[-1]["response"]["usage"]["total_tokens"]) == ("cancelled", 0)
    driver.create("more", previous_response_id=response)
    assert driver.said == [("user", "hi"), ("user", "more")]


def test_a_cancel_with_nothing_running_and_one_that_comes_late() -> None:
    driver = Driver()
    assert error_of(driver.say("response.cancel"))["code"] == "response_cancel_not_active"
    error = error_of(driver.say("response.cancel", response_id="resp_x"))
    assert (error["code"], error["param"]) == ("response_cancel_not_active", "response_id")
    response = driver.create()
    driver.step(response, "A", "stop")
    assert driver.say("response.cancel", response_id=response) == []


def test_a_cancel_lets_the_next_of_the_lane_begin() -> None:
    driver = Driver()
    driver.create("one")
    driver.say("response.create", input="two")
    driver.say("response.cancel")
    assert driver.said == [("user", "two")]


# Steering


def test_steer_goes_on_from_what_was_said() -> None:
    driver = Driver()
    first = driver.create("hi", stream_id="a", temperature=0.5, instructions="Be kind.", store=False)
    driver.say("response.create", input="next in line", stream_id="a")
    driver.step(first, "Hello")
    events = driver.say("response.steer", previous_response_id=first, input="shorter")
    kinds = types(events)
    assert kinds[0] == "response.steer.accepted"
    assert kinds.index("response.incomplete") < kinds.index("response.created")
    steered = events[kinds.index("response.incomplete")]["response"]
    assert (steered["incomplete_details"], steered["output"][0]["status"]) == ({"reason": "steered"}, "incomplete")
    assert driver.aborted == [first]
    assert driver.said == [("user", "hi"), ("assistant", "Hello"), ("user", "shorter")]
    successor = events[-1]["response"]
    assert (successor["previous_response_id"], successor["temperature"]) == (first, 0.5)
    assert successor["instructions"] == "Be kind."
    assert {event["stream_id"] for event in events} == {"a"}
    numbers = [e["sequence_number"] for e in driver.events if e["type"] != "error"]
    assert numbers[: kinds.index("response.created")] == sorted(numbers[: kinds.index("response.created")])
    driver.step(successor["id"], "OK", "stop")
    assert driver.said == [("user", "next in line")]


def test_input_for_a_response_that_calls_tools_waits_for_the_answers() -> None:
    driver = Driver()
    first = driver.create("hi", store=False)
    driver.step(first, "{")
    assert types(driver.say("response.steer", previous_response_id=first, input="quick")) == ["response.steer.accepted"]
    more = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "please"}]}]
    driver.say("response.steer", previous_response_id=first, input=more)
    events = driver.step(first, "}", "stop")
    assert types(events)[-3:] == ["response.completed", "response.steer.pending", "response.steer.pending"]
    (stub,) = events[-1]["required_input"]
    assert stub == {"type": "function_call_output", "call_id": "call_0", "name": "look"}
    driver.create([{**stub, "output": "sunny"}], previous_response_id=first)
    assert driver.begun[-1].items == (
        Message("", "user", "hi"),
        Call(driver.begun[-1].items[1].id, "call_0", "look", "{}"),
        Message("", "user", "quick"),
        Message("", "user", "please"),
        CallOutput("", "call_0", "sunny"),
    )


def test_input_that_cannot_be_used_comes_back() -> None:
    driver = Driver()

    def refused(**fields: Any) -> str:
        (event,) = driver.say("response.steer", **fields)
        assert event["type"] == "response.steer.failed"
        assert event["steer"]["input"] == fields["input"]
        code: str = event["error"]["code"]
        return code

    assert refused(previous_response_id="resp_x", input="a") == "response_not_found"
    response = driver.create()
    robot = [{"type": "message", "role": "user", "content": [{"type": "input_image", "detail": "auto"}]}]
    assert refused(previous_response_id=response, input=robot) == "invalid_input"
    driver.step(response, "A{")
    for _ in range(MAX_STEERS):
        driver.say("response.steer", previous_response_id=response, input="a")
    assert refused(previous_response_id=response, input="a") == "too_many_pending_steers"
    events = driver.say("response.cancel")
    assert types(events).count("response.steer.failed") == MAX_STEERS
    assert refused(previous_response_id=response, input="a") == "response_already_completed"
    warm = driver.create(generate=False)
    assert refused(previous_response_id=warm, input="a") == "steering_not_supported"


def test_a_steered_response_that_runs_into_its_limit_has_a_successor() -> None:
    driver = Driver()
    response = driver.create("hi", store=False)
    driver.step(response, "A{")
    driver.say("response.steer", previous_response_id=response, input="quick")
    driver.step(response, "1", "length")
    assert driver.said == [("user", "hi"), ("assistant", "A"), ("user", "quick")]
