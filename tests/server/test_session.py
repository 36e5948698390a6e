from __future__ import annotations

from typing import Any

import openai.types.realtime as sdk
import pytest
from openai.types.realtime.realtime_server_event import RealtimeServerEvent
from pydantic import TypeAdapter
from realtime_session import LIMITS, REPLY, Driver, error_of, types

from paceline.server.session_outputs import Begin
from paceline.server.session_responses import MAX_RESPONSES


def test_the_limit_of_a_tree_that_holds_is_told() -> None:
    driver = Driver()
    assert driver.events[0]["session"]["speculation"] == {"mode": "auto", "max_nodes": LIMITS.max_nodes}
    for asked, holds in ((LIMITS.max_nodes + 1, LIMITS.max_nodes), (2, 2)):
        (updated,) = driver.say("session.update", session={"type": "realtime", "speculation": {"max_nodes": asked}})
        assert updated["session"]["speculation"]["max_nodes"] == holds


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
        ('{"type": "response.create", "response": {"tools": [{}]}}', None),
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
        ('{"type": "conversation.item.create", "item": {"type": "mcp_call"}}', "unsupported"),
        ('{"type": "conversation.item.retrieve"}', None),
        ('{"type": "conversation.item.retrieve", "item_id": "x"}', "item_not_found"),
        ('{"type": "conversation.item.delete", "item_id": "x"}', "item_not_found"),
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


def test_a_reply_stands_behind_what_it_answers() -> None:
    """Also when the client went on while the prompt was made."""
    driver = Driver()
    first = driver.user("hello")[0]["item"]["id"]
    (begin,) = driver.session.receive('{"type": "response.create"}')
    assert isinstance(begin, Begin)
    driver.user("and another thing")
    driver.take([begin])
    driver.step(begin.response_id, "H")
    assert [event["previous_item_id"] for event in driver.events if event["type"] == "conversation.item.added"] == [
        None,
        first,
        first,
    ]
    driver.step(begin.response_id, "i", "stop")
    driver.create()
    assert [message["content"] for message in driver.begun[-1].messages] == ["hello", "Hi", "and another thing"]


def test_items_can_be_looked_at_and_deleted() -> None:
    driver = Driver()
    item = driver.user("hello", id="mine")[0]["item"]
    assert driver.say("conversation.item.retrieve", item_id="mine")[0]["item"] == item
    response_id = driver.create()
    driver.step(response_id, "y")
    reply = driver.events[-1]["item_id"]
    assert "still being written" in error_of(driver.say("conversation.item.delete", item_id=reply))["message"]
    driver.step(response_id, "x", "stop")
    assert driver.say("conversation.item.delete", item_id="mine") == [
        {"type": "conversation.item.deleted", "item_id": "mine", "event_id": driver.events[-1]["event_id"]}
    ]
    driver.create()
    assert driver.begun[-1].messages == [{"role": "assistant", "content": "yx"}]
