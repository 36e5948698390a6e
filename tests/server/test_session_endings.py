"""How a reply of a session ends: whole, cut off, cancelled, failed or never begun."""

from __future__ import annotations

from typing import Any

import pytest
from realtime_session import REPLY, Driver, error_of, types
from token_replies import BrokenReader

from paceline.engine.errors import RequestError
from paceline.engine.request import Delta
from paceline.server.session_outputs import Abort, Begin


def test_cancel_ends_with_one_response_done_and_nothing_after() -> None:
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    driver.step(response_id, "Hi")
    events = driver.say("response.cancel")
    assert Abort(response_id) in driver.commands
    assert types(events) == REPLY[6:]
    done = events[-1]["response"]
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "client_cancelled")
    assert done["output"][0]["status"] == "incomplete"
    assert done["usage"]["output_tokens"] == len(driver.tokenizer.encode("Hi"))
    assert driver.step(response_id, "late") == []
    assert driver.take(driver.session.fail(response_id, "late")) == []
    assert error_of(driver.say("response.cancel"))["code"] == "response_cancel_not_active"
    assert types(driver.events).count("response.done") == 1


def test_a_response_can_be_cancelled_while_its_prompt_is_made() -> None:
    driver = Driver()
    driver.user("hello")
    (begin,) = driver.session.receive('{"type": "response.create"}')
    assert isinstance(begin, Begin)
    abort, *rest = driver.session.receive('{"type": "response.cancel"}')
    assert abort == Abort(begin.response_id)
    events = driver.take(rest)
    assert types(events) == [kind for kind in REPLY if kind != "response.output_text.delta"]
    done = events[-1]["response"]
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "client_cancelled")
    assert done["usage"]["total_tokens"] == 0
    assert driver.session.idle
    driver.create()
    assert driver.begun[-1].messages == [{"role": "user", "content": "hello"}]


def test_cancel_releases_held_back_text() -> None:
    """A character that was cut off comes out as one replacement character, before the end."""
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    committer = driver.replies[response_id].committer
    half = driver.tokenizer.encode("😀")[:1]
    driver.take(driver.session.piece(response_id, committer.push(Delta(request_id=response_id, tokens=tuple(half)))))
    events = driver.say("response.cancel", response_id=response_id)
    assert types(events) == [*REPLY[1:5], *REPLY[6:]]
    delta, done = events[3:5]
    assert delta["delta"] == done["text"] == "\ufffd"
    assert delta["x_spec"]["emitted"] == 1


@pytest.mark.parametrize(
    ("finish", "status", "details"),
    [
        ("stop", "completed", None),
        ("length", "incomplete", {"type": "incomplete", "reason": "max_output_tokens"}),
        ("abort", "cancelled", {"type": "cancelled", "reason": "server_stopped"}),
    ],
)
def test_how_a_reply_can_end(finish: Any, status: str, details: dict[str, Any] | None) -> None:
    driver = Driver()
    driver.user("hello")
    events = driver.step(driver.create(), "x", finish)
    assert events[-1]["response"]["status"] == status
    assert events[-1]["response"]["status_details"] == details
    assert driver.session.idle


def test_failures_are_said_once() -> None:
    driver = Driver()
    driver.user("hello")
    events = driver.step(driver.create(), "x", "error", error="The step failed; try again.")
    assert events[-1]["response"]["status"] == "failed"
    assert events[-1]["response"]["status_details"]["error"]["message"] == "The step failed; try again."
    response_id = driver.create()
    events = driver.take(driver.session.fail(response_id, "It broke."))
    assert types(events)[-1] == "response.done"
    assert events[-1]["response"]["status_details"]["error"]["message"] == "It broke."


def test_a_refused_start_is_an_error_and_no_response() -> None:
    driver = Driver()
    driver.user("hello")
    (begin,) = driver.session.receive('{"type": "response.create", "event_id": "mine"}')
    assert isinstance(begin, Begin)
    refusal = RequestError("Too long; shorten it.", code="context_length_exceeded")
    error = error_of(driver.take(driver.session.refuse(begin.response_id, refusal)))
    assert (error["code"], error["event_id"]) == ("context_length_exceeded", "mine")
    assert driver.session.idle


def test_a_draining_session_takes_no_new_response_but_finishes_its_own() -> None:
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    driver.session.accepting = False
    assert types(driver.step(response_id, "x", "stop"))[-1] == "response.done"
    assert error_of(driver.say("response.create"))["code"] == "shutting_down"


def test_a_reply_whose_reader_breaks_has_an_end_all_the_same() -> None:
    driver = Driver(reader=lambda _: BrokenReader())
    driver.user("hello")
    response_id = driver.create()
    driver.step(response_id, "ab")
    half = driver.tokenizer.encode("😀")[:1]
    committer = driver.replies[response_id].committer
    driver.take(driver.session.piece(response_id, committer.push(Delta(request_id="", tokens=tuple(half)))))
    with pytest.raises(ValueError, match="the reader broke"):
        driver.step(response_id, "!")
    driver.take(driver.session.fail(response_id, "It broke."))
    done = driver.events[-1]
    assert (done["type"], done["response"]["status"]) == ("response.done", "failed")
    assert done["response"]["output"][0]["content"][0]["text"] == "ab"
    told = [event["x_spec"]["emitted"] for event in driver.events if "x_spec" in event]
    assert sum(told) == done["response"]["usage"]["output_tokens"] == len(driver.tokenizer.encode("ab")) + 1
    assert driver.session.idle
