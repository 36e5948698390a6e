"""What a client does to its items and to the text it is still writing."""

from __future__ import annotations

from typing import Any

import pytest
from realtime_session import Driver, error_of, types

CALL = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "sun"}


def replied(text: str = "Riders who né😀", finish: Any = "stop") -> tuple[Driver, str]:
    """A conversation of a question and a reply; the reply's item id."""
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    driver.step(response_id, text, finish)
    item_id = next(event["item_id"] for event in driver.events if "item_id" in event)
    return driver, item_id


# Items


def test_calls_and_outputs_are_items() -> None:
    driver = Driver()
    driver.user("weather?")
    assert types(driver.say("conversation.item.create", item=CALL)) == [
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert driver.say("conversation.item.create", item=OUTPUT)[0]["item"]["output"] == "sun"
    driver.create()
    assert [message["role"] for message in driver.begun[-1].messages] == ["user", "assistant", "tool"]


def test_items_go_behind_the_one_that_is_named() -> None:
    driver = Driver()
    driver.user("b", id="b")
    (added, _) = driver.user("c", id="c")
    assert added["previous_item_id"] == "b"
    content = [{"type": "input_text", "text": "a"}]
    first = {"type": "message", "role": "user", "content": content}
    assert driver.say("conversation.item.create", item=first, previous_item_id="root")[0]["previous_item_id"] is None
    driver.create()
    assert [message["content"] for message in driver.begun[-1].messages] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("event", "param", "code"),
    [
        ({"item": OUTPUT}, "item.call_id", "call_not_found"),
        ({"item": {**CALL, "id": "taken"}}, "item.id", "item_exists"),
        ({"item": CALL, "previous_item_id": "nowhere"}, "previous_item_id", "item_not_found"),
        ({"item": CALL, "previous_item_id": 5}, "previous_item_id", None),
        ({"item": {**CALL, "arguments": "{"}}, "item.arguments", "invalid_json"),
        ({"item": []}, "item", None),
        ({}, "item", None),
    ],
)
def test_items_that_cannot_be_created(event: dict[str, Any], param: str | None, code: str | None) -> None:
    driver = Driver()
    driver.user("hello", id="taken")
    error = error_of(driver.say("conversation.item.create", event_id="mine", **event))
    assert (error["param"], error["code"], error["event_id"]) == (param, code, "mine")


# Text that is still written


def test_text_grows_and_becomes_an_item() -> None:
    driver = Driver()
    assert driver.say("input_text.append", text="Hello ") == []
    assert driver.say("input_text.append", text="there") == []
    committed, added, done = driver.say("input_text.commit")
    assert types([committed, added, done]) == [
        "input_text.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert committed["item_id"] == added["item"]["id"]
    assert added["item"]["role"] == "user"
    assert added["item"]["content"] == [{"type": "input_text", "text": "Hello there"}]
    assert error_of(driver.say("input_text.commit", event_id="again"))["code"] == "input_text_empty"
    driver.create()
    assert driver.begun[-1].messages == [{"role": "user", "content": "Hello there"}]


def test_a_cleared_text_is_gone() -> None:
    driver = Driver()
    driver.say("input_text.append", text="Hullo")
    assert types(driver.say("input_text.clear")) == ["input_text.cleared"]
    assert types(driver.say("input_text.clear")) == ["input_text.cleared"]
    assert error_of(driver.say("input_text.commit"))["code"] == "input_text_empty"
    driver.say("input_text.append", text="Hello")
    assert driver.say("input_text.commit")[1]["item"]["content"][0]["text"] == "Hello"


@pytest.mark.parametrize("text", [None, 5, ["a"]])
def test_text_must_be_text(text: Any) -> None:
    assert error_of(Driver().say("input_text.append", text=text))["param"] == "text"


def test_the_text_is_bounded() -> None:
    driver = Driver()
    driver.say("input_text.append", text="x" * 6000)
    assert error_of(driver.say("input_text.append", text="x" * 6000))["code"] == "conversation_full"
    assert len(driver.say("input_text.commit")[1]["item"]["content"][0]["text"]) == 6000


def test_a_commit_that_is_refused_keeps_the_text() -> None:
    driver = Driver()
    driver.say("input_text.append", text="Hello")
    assert error_of(driver.say("input_text.commit", previous_item_id="nowhere"))["code"] == "item_not_found"
    assert driver.say("input_text.commit")[1]["item"]["content"][0]["text"] == "Hello"


def test_text_may_come_while_a_response_runs() -> None:
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    driver.step(response_id, "Hi")
    driver.say("input_text.append", text="wait")
    driver.say("input_text.clear")
    driver.say("input_text.append", text="stop")
    driver.say("input_text.commit")
    driver.step(response_id, " you", "stop")
    driver.create()
    assert [message["content"] for message in driver.begun[-1].messages] == ["hello", "Hi you", "stop"]


# Cutting a reply to what was heard


def test_a_reply_is_cut_to_what_was_heard() -> None:
    driver, item_id = replied()
    (event,) = driver.say("conversation.item.truncate", item_id=item_id, content_index=0, x_text_end=13)
    assert event["type"] == "conversation.item.truncated"
    assert (event["item_id"], event["content_index"], event["x_text_end"]) == (item_id, 0, 13)
    item = driver.say("conversation.item.retrieve", item_id=item_id)[0]["item"]
    assert (item["status"], item["content"][0]["text"]) == ("incomplete", "Riders who né")
    driver.create()
    assert driver.begun[-1].messages[-1] == {"role": "assistant", "content": "Riders who né"}


def test_a_cancelled_reply_can_be_cut_down_to_nothing() -> None:
    driver, item_id = replied(finish=None)
    driver.say("response.cancel")
    stamped = {"audio_end_ms": 120, "x_text_end": 0}
    event = driver.say("conversation.item.truncate", item_id=item_id, content_index=0, **stamped)[0]
    assert event["audio_end_ms"] == 120
    driver.create()
    assert driver.begun[-1].messages == [{"role": "user", "content": "hello"}]


@pytest.mark.parametrize(
    ("event", "param", "code"),
    [
        ({}, "item_id", None),
        ({"item_id": "nowhere"}, "item_id", "item_not_found"),
        ({"item_id": "REPLY"}, "x_text_end", None),
        ({"item_id": "REPLY", "audio_end_ms": 500}, "audio_end_ms", "unsupported"),
        ({"item_id": "REPLY", "x_text_end": 14}, "x_text_end", None),
        ({"item_id": "REPLY", "x_text_end": -1}, "x_text_end", None),
        ({"item_id": "REPLY", "x_text_end": "3"}, "x_text_end", None),
        ({"item_id": "REPLY", "x_text_end": True}, "x_text_end", None),
        ({"item_id": "REPLY", "x_text_end": 3, "content_index": 1}, "content_index", None),
        ({"item_id": "REPLY", "x_text_end": 3, "audio_end_ms": "x"}, "audio_end_ms", None),
        ({"item_id": "mine", "x_text_end": 3}, "item_id", None),
    ],
)
def test_cuts_that_cannot_be_made(event: dict[str, Any], param: str, code: str | None) -> None:
    driver, item_id = replied("Riders who né")
    driver.user("mine", id="mine")
    named = {key: item_id if value == "REPLY" else value for key, value in event.items()}
    error = error_of(driver.say("conversation.item.truncate", event_id="e", **named))
    assert (error["param"], error["code"], error["event_id"]) == (param, code, "e")
    item = driver.say("conversation.item.retrieve", item_id=item_id)[0]["item"]
    assert (item["status"], item["content"][0]["text"]) == ("completed", "Riders who né")


def test_a_reply_that_is_being_written_is_cancelled_first() -> None:
    driver, item_id = replied(finish=None)
    for kind in ("conversation.item.truncate", "conversation.item.delete"):
        error = error_of(driver.say(kind, item_id=item_id, x_text_end=3))
        assert error["code"] == "item_in_progress"
        assert "cancel its response first" in error["message"]


# What is computed ahead


def test_what_the_next_prompt_begins_with_is_told_when_it_changes() -> None:
    driver = Driver()
    assert driver.warms == []
    driver.say("session.update", session={"instructions": "Be kind."})
    head = [{"role": "system", "content": "Be kind."}]
    driver.say("input_text.append", text="he")
    driver.say("input_text.append", text="llo")
    driver.say("input_text.append", text="")  # changes nothing
    driver.say("input_text.clear")
    driver.user("hi")
    driver.say("conversation.item.retrieve", item_id="nowhere")
    hi = {"role": "user", "content": "hi"}
    assert [(warm.messages, warm.pending) for warm in driver.warms] == [
        (head, None),
        (head, "he"),
        (head, "hello"),
        (head, None),
        ([*head, hi], None),
    ]


def test_nothing_is_computed_ahead_of_a_reply_that_is_being_written() -> None:
    driver, item_id = replied(finish=None)
    before = len(driver.warms)
    driver.say("input_text.append", text="wait")
    assert len(driver.warms) == before
    driver.say("response.cancel")
    hello = {"role": "user", "content": "hello"}
    assert driver.warms[-1].messages == [hello, {"role": "assistant", "content": "Riders who né😀"}]
    assert driver.warms[-1].pending == "wait"
    driver.say("conversation.item.truncate", item_id=item_id, x_text_end=6)
    assert driver.warms[-1].messages == [hello, {"role": "assistant", "content": "Riders"}]
    assert len(driver.warms) == before + 2


def test_a_response_beside_the_conversation_changes_nothing_of_it() -> None:
    driver, _ = replied()
    before = len(driver.warms)
    driver.step(driver.create(conversation="none"), "x", "stop")
    assert len(driver.warms) == before


def test_the_client_is_told_what_is_ready_of_its_text() -> None:
    driver = Driver()
    driver.say("input_text.append", text="hello 🌙")
    warm = driver.warms[-1]
    driver.say("input_text.append", text=" there")
    (event,) = driver.take(driver.session.prefilled(warm, 30, 20, 16))
    assert (event["type"], event["tokens"], event["stable_tokens"]) == ("x_input_text.prefilled", 30, 20)
    assert (event["cached_tokens"], event["text_end"]) == (16, 7)
    driver.say("input_text.clear")
    driver.say("input_text.append", text="hullo")
    assert driver.take(driver.session.prefilled(warm, 30, 20, 16)) == []
    driver.say("input_text.commit")
    assert driver.take(driver.session.prefilled(driver.warms[-1], 30, 20, 16)) == []
