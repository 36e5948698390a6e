from __future__ import annotations

from typing import Any

import openai.types.realtime as sdk
import pytest
from openai.types.realtime.realtime_server_event import RealtimeServerEvent
from pydantic import TypeAdapter
from realtime_session import Driver, types

from paceline.engine.errors import RequestError
from paceline.engine.request import Delta
from paceline.server.session import MAX_RESPONSES, Abort, Begin

REPLY = [
    "response.created",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]


def error_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    assert types(events) == ["error"]
    error: dict[str, Any] = events[0]["error"]
    assert set(error) == {"type", "code", "message", "param", "event_id"}
    assert error["message"].endswith(".")
    return error


def test_a_whole_turn_in_the_accepted_order() -> None:
    driver = Driver()
    assert types(driver.events) == ["session.created"]
    updated = driver.say("session.update", session={"type": "realtime", "instructions": "Be brief."})
    assert types(updated) == ["session.updated"]
    assert updated[0]["session"]["instructions"] == "Be brief."
    assert types(driver.user("hello")) == ["conversation.item.added", "conversation.item.done"]
    start = len(driver.events)
    response_id = driver.create()
    driver.step(response_id, "Hi")
    driver.step(response_id, " you", "stop", drafted=3, accepted=1)
    turn = driver.events[start:]
    assert types(turn) == REPLY
    assert driver.begun[0].messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]
    done = turn[-1]["response"]
    assert done["status"] == "completed"
    assert done["output"][0]["content"][0]["text"] == "Hi you"
    emitted = sum(event["x_spec"]["emitted"] for event in turn if event["type"].endswith("text.delta"))
    assert emitted == done["usage"]["output_tokens"]
    driver.user("and then?")
    driver.create()
    assert driver.begun[1].messages[2] == {"role": "assistant", "content": "Hi you"}


def test_the_stock_sdk_knows_every_event() -> None:
    driver = Driver()
    driver.say("session.update", session={"type": "realtime", "temperature": 0.5})
    item = driver.user("hello")[0]["item"]
    driver.say("conversation.item.retrieve", item_id=item["id"])
    response_id = driver.create(metadata={"k": "v"})
    driver.step(response_id, "Hi")
    driver.step(response_id, " you", "length")
    driver.say("conversation.item.delete", item_id=item["id"])
    driver.say("nonsense")
    adapter: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
    for event in driver.events:
        parsed = adapter.validate_python(event)
        assert parsed.type == event["type"]
    assert isinstance(adapter.validate_python(driver.events[-1]), sdk.RealtimeErrorEvent)
    assert len({event["event_id"] for event in driver.events}) == len(driver.events)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        ('"hello"', "invalid_json"),
        ("{}", None),
        ('{"type": 5}', None),
        ('{"type": "response.explode"}', "unknown_event"),
        ('{"type": "input_audio_buffer.append", "audio": ""}', "unsupported"),
        ('{"type": "response.create", "response": 5}', None),
        ('{"type": "response.create"}', "empty_conversation"),
        ('{"type": "response.create", "response": {"conversation": "other"}}', None),
        ('{"type": "response.create", "response": {"output_modalities": ["audio"]}}', "unsupported"),
        ('{"type": "response.create", "response": {"tools": [{}]}}', "unsupported"),
        ('{"type": "response.create", "response": {"x_resume": true}}', "unsupported"),
        ('{"type": "response.create", "response": {"max_output_tokens": 0}}', None),
        ('{"type": "response.create", "response": {"input": [{"type": "item_reference"}]}}', None),
        (
            '{"type": "response.create", "response": {"input": [{"type": "item_reference", "id": "x"}]}}',
            "item_not_found",
        ),
        ('{"type": "response.create", "response": {"instructions": "x", "temperature": -1}}', None),
        ('{"type": "response.cancel"}', "response_cancel_not_active"),
        ('{"type": "response.cancel", "response_id": "x"}', "response_cancel_not_active"),
        ('{"type": "session.update"}', None),
        ('{"type": "session.update", "session": {"type": "transcription"}}', None),
        ('{"type": "session.update", "session": {"model": "other"}}', None),
        ('{"type": "session.update", "session": {"instructions": 5}}', None),
        ('{"type": "session.update", "session": {"temperature": "hot"}}', None),
        ('{"type": "conversation.item.create"}', None),
        ('{"type": "conversation.item.create", "item": {"type": "function_call"}}', "unsupported"),
        ('{"type": "conversation.item.retrieve"}', None),
        ('{"type": "conversation.item.retrieve", "item_id": "x"}', "item_not_found"),
        ('{"type": "conversation.item.delete", "item_id": "x"}', "item_not_found"),
        ('{"type": "conversation.item.truncate", "item_id": "x"}', "unsupported"),
    ],
)
def test_mistakes_are_errors_on_an_open_session(text: str, code: str | None) -> None:
    driver = Driver()
    assert error_of(driver.take(driver.session.receive(text)))["code"] == code
    driver.user("still here")
    assert driver.create()


def test_an_error_names_the_client_event_it_answers() -> None:
    driver = Driver()
    error = error_of(driver.say("session.update", event_id="mine", session={"temperature": "hot"}))
    assert (error["event_id"], error["param"]) == ("mine", "session.temperature")


def test_a_refused_update_changes_nothing() -> None:
    driver = Driver()
    driver.say("session.update", session={"instructions": "new", "temperature": -1})
    session = driver.say("session.update", session={})[0]["session"]
    assert (session["instructions"], session["temperature"]) == ("", 1.0)


def test_settings_of_a_response_stay_with_it() -> None:
    driver = Driver()
    driver.say("session.update", session={"temperature": 0.25, "max_output_tokens": 9})
    driver.user("hello")
    driver.create(temperature=0.5, conversation="none")
    driver.create()
    first, second = (begin.parameters for begin in driver.begun)
    assert (first.sampling.temperature, first.max_tokens) == (0.5, 9)
    assert (second.sampling.temperature, second.max_tokens) == (0.25, 9)


def test_one_response_writes_to_the_conversation() -> None:
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    error = error_of(driver.say("response.create"))
    assert error["code"] == "conversation_already_has_active_response"
    driver.step(response_id, "done", "stop")
    assert types(driver.say("response.create"))[0] == "response.created"


def test_others_may_run_beside_it_on_their_own_input() -> None:
    driver = Driver()
    item = driver.user("hello")[0]["item"]
    main = driver.create()
    aside = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "aside"}]}
    beside = driver.create(conversation="none", input=[{"type": "item_reference", "id": item["id"]}, aside])
    assert driver.begun[1].messages == [{"role": "user", "content": "hello"}, {"role": "user", "content": "aside"}]
    driver.step(beside, "aside", "stop")
    driver.step(main, "main", "stop")
    driver.create()
    assert driver.begun[2].messages[1:] == [{"role": "assistant", "content": "main"}]


def test_a_session_has_only_so_many_responses_at_once() -> None:
    driver = Driver()
    driver.user("hello")
    for _ in range(MAX_RESPONSES):
        driver.create(conversation="none")
    assert error_of(driver.say("response.create", response={"conversation": "none"}))["code"] == "too_many_responses"


def test_cancel_ends_with_one_response_done_and_nothing_after() -> None:
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    driver.step(response_id, "Hi")
    events = driver.say("response.cancel")
    assert driver.commands[-1] == Abort(response_id)
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


def test_a_reply_stands_behind_what_it_answers() -> None:
    """Also when the client went on while the prompt was made."""
    driver = Driver()
    first = driver.user("hello")[0]["item"]["id"]
    (begin,) = driver.session.receive('{"type": "response.create"}')
    assert isinstance(begin, Begin)
    driver.user("and another thing")
    driver.take([begin])
    assert [event["previous_item_id"] for event in driver.events if event["type"] == "conversation.item.added"] == [
        None,
        first,
        first,
    ]
    driver.step(begin.response_id, "Hi", "stop")
    driver.create()
    assert [message["content"] for message in driver.begun[-1].messages] == ["hello", "Hi", "and another thing"]


def test_cancel_releases_held_back_text() -> None:
    """A character that was cut off comes out as one replacement character, before the end."""
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    committer = driver.replies[response_id].committer
    half = driver.tokenizer.encode("😀")[:1]
    driver.take(driver.session.piece(response_id, committer.push(Delta(request_id=response_id, tokens=tuple(half)))))
    events = driver.say("response.cancel", response_id=response_id)
    assert types(events) == REPLY[5:]
    assert events[0]["delta"] == events[1]["text"] == "\ufffd"
    assert events[0]["x_spec"]["emitted"] == 1


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


def test_items_can_be_looked_at_and_deleted() -> None:
    driver = Driver()
    item = driver.user("hello", id="mine")[0]["item"]
    assert driver.say("conversation.item.retrieve", item_id="mine")[0]["item"] == item
    response_id = driver.create()
    reply = driver.events[-1]["item_id"]
    assert "still being written" in error_of(driver.say("conversation.item.delete", item_id=reply))["message"]
    driver.step(response_id, "x", "stop")
    assert driver.say("conversation.item.delete", item_id="mine") == [
        {"type": "conversation.item.deleted", "item_id": "mine", "event_id": driver.events[-1]["event_id"]}
    ]
    driver.create()
    assert driver.begun[-1].messages == [{"role": "assistant", "content": "x"}]


def test_a_draining_session_takes_no_new_response_but_finishes_its_own() -> None:
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    driver.session.accepting = False
    assert types(driver.step(response_id, "x", "stop"))[-1] == "response.done"
    assert error_of(driver.say("response.create"))["code"] == "shutting_down"
