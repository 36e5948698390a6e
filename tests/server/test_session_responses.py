"""Responses of a session: beside the conversation and in it, with tools and thoughts, and what they carry."""

from __future__ import annotations

import itertools
import json
from typing import Any

import openai.types.realtime as sdk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.realtime.realtime_server_event import RealtimeServerEvent
from pydantic import TypeAdapter
from realtime_session import Driver, calling, error_of, types

from paceline.engine.request import Finish
from paceline.server.session_outputs import Abort

THOUGHT = "<think>\nhm, weather\n</think>\n\n"


def call(name: str, arguments: str = "{}") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'


REPLY = f"{THOUGHT}I look.{call('weather')}\n{call('time')}"


def test_a_reply_that_calls_tools() -> None:
    driver = Driver(reader=calling)
    driver.user("weather?")
    response_id = driver.create()
    events = driver.step(response_id, REPLY, "stop")
    done = events[-1]["response"]
    assert done["status"] == "completed"
    assert [(item["type"], item["status"]) for item in done["output"]] == [
        ("message", "completed"),
        ("function_call", "completed"),
        ("function_call", "completed"),
    ]
    assert [item["name"] for item in done["output"][1:]] == ["weather", "time"]
    first, second = (item["call_id"] for item in done["output"][1:])
    added = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
    assert added == [0, 1, 2]
    for call_id in (first, second):
        driver.say(
            "conversation.item.create", item={"type": "function_call_output", "call_id": call_id, "output": call_id}
        )
    driver.create()
    assert driver.begun[-1].messages[1:] == [
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "hm, weather",
            "tool_calls": [
                {"id": first, "type": "function", "function": {"name": "weather", "arguments": {}}},
                {"id": second, "type": "function", "function": {"name": "time", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_call_id": first, "content": first},
        {"role": "tool", "tool_call_id": second, "content": second},
    ]


def test_the_stock_sdk_knows_the_events_of_calls() -> None:
    driver = Driver(reader=calling)
    driver.user("weather?")
    done = driver.step(driver.create(), f"I look.{call('weather')}", "stop")[-1]["response"]
    output = {"type": "function_call_output", "call_id": done["output"][1]["call_id"], "output": "x"}
    driver.say("conversation.item.create", item=output)
    driver.say("conversation.item.truncate", item_id=driver.events[-1]["item"]["id"], x_text_end=1)
    item_id = next(event["item_id"] for event in driver.events if "item_id" in event)
    driver.say("conversation.item.truncate", item_id=item_id, x_text_end=1)
    adapter: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
    parsed = [adapter.validate_python(event) for event in driver.events]
    assert [event.type for event in parsed] == types(driver.events)
    assert isinstance(parsed[-1], sdk.ConversationItemTruncatedEvent)


def test_a_call_that_is_cut_off_is_incomplete() -> None:
    driver = Driver(reader=calling)
    driver.user("weather?")
    done = driver.step(driver.create(), call("weather", '{"a": 1}')[:-20], "length")[-1]["response"]
    assert (done["status"], done["output"][0]["status"]) == ("incomplete", "incomplete")
    driver.create()
    assert driver.begun[-1].messages == [{"role": "user", "content": "weather?"}]


@given(cuts=st.lists(st.integers(0, 200), max_size=12))
@settings(max_examples=25, deadline=None)
def test_how_a_reply_is_spread_over_steps_changes_no_item(cuts: list[int]) -> None:
    driver = Driver(reader=calling)
    driver.user("weather?")
    response_id = driver.create()
    ids = driver.tokenizer.encode(REPLY)
    places = sorted({0, len(ids), *(cut % len(ids) for cut in cuts)})
    for start, end in itertools.pairwise(places):
        driver.step_ids(response_id, ids[start:end], "stop" if end == len(ids) else None)
    done = driver.events[-1]["response"]
    assert [item["type"] for item in done["output"]] == ["message", "function_call", "function_call"]
    assert done["output"][0]["content"][0]["text"] == "I look."
    check(driver)


def test_thoughts_are_told_beside_the_items() -> None:
    driver = Driver(reader=calling)
    driver.user("why?")
    events = driver.step(driver.create(), "<think>because</think>So.", "stop")
    thoughts = [event for event in events if event["type"] == "x_response.reasoning.delta"]
    assert "".join(event["delta"] for event in thoughts) == "because"
    (whole,) = (event for event in events if event["type"] == "x_response.reasoning.done")
    assert whole["text"] == "because"
    assert events[-1]["response"]["output"][0]["content"] == [{"type": "output_text", "text": "So."}]


# Beside the conversation


def test_a_response_beside_has_its_own_instructions_and_items() -> None:
    driver = Driver()
    driver.say("session.update", session={"instructions": "Be kind."})
    driver.user("hello", id="mine")
    main = driver.create()
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "sun"}
    beside = driver.create(
        conversation="none",
        instructions="Sum up.",
        input=[{"type": "item_reference", "id": "mine"}, call, output],
        metadata={"topic": "sum"},
    )
    begin = driver.begun[-1]
    assert [message["role"] for message in begin.messages] == ["system", "user", "assistant", "tool"]
    assert begin.messages[0]["content"] == "Sum up."
    assert not begin.in_conversation
    done = driver.step(beside, "x", "stop")[-1]["response"]
    assert (done["conversation_id"], done["metadata"]) == (None, {"topic": "sum"})
    assert driver.begun[0].in_conversation
    assert driver.step(main, "y", "stop")[-1]["response"]["conversation_id"] is not None
    driver.create(instructions="", input=[])
    assert error_of(driver.events[-1:])["code"] == "empty_conversation"


def test_each_of_them_can_be_cancelled() -> None:
    driver = Driver()
    driver.user("hello")
    main = driver.create()
    beside = driver.create(conversation="none")
    driver.say("response.cancel", response_id=beside)
    assert driver.events[-1]["response"]["id"] == beside
    driver.say("response.cancel")
    assert driver.events[-1]["response"]["id"] == main
    error = error_of(driver.say("response.cancel", response_id=beside, event_id="late"))
    assert (error["code"], error["param"], error["event_id"]) == ("response_cancel_not_active", "response_id", "late")


# What a response is asked with


def test_what_begin_carries() -> None:
    driver = Driver()
    driver.user("hello")
    driver.create(prediction={"type": "content", "content": "Hi there"}, priority="background", x_resume=True)
    begin = driver.begun[-1]
    assert (begin.prediction, begin.parameters.priority, begin.resumable) == ("Hi there", "background", True)
    driver.create(conversation="none")
    begin = driver.begun[-1]
    assert (begin.prediction, begin.parameters.priority, begin.resumable) == ("", "interactive", False)


@pytest.mark.parametrize(
    ("response", "param"),
    [
        ({"prediction": {"type": "content"}}, "response.prediction.content"),
        ({"prediction": "text"}, "response.prediction"),
        ({"priority": "urgent"}, "response.priority"),
        ({"conversation": "mine"}, "response.conversation"),
        ({"x_resume": "yes"}, "response.x_resume"),
        ({"metadata": {"a": 1}}, "response.metadata"),
        ({"input": {}}, "response.input"),
        ({"input": ["x"]}, "response.input[0]"),
        ({"input": [{"type": "message"}]}, "response.input[0].role"),
        ({"instructions": 5}, "response.instructions"),
        ({"audio": {"output": {}}}, "response.audio"),
        ({"max_output_tokens": 1.5}, "response.max_output_tokens"),
    ],
)
def test_bad_responses_name_the_field_and_start_nothing(response: dict[str, Any], param: str) -> None:
    driver = Driver()
    driver.user("hello")
    assert error_of(driver.say("response.create", response=response))["param"] == param
    assert driver.session.idle


def test_usage_adds_up() -> None:
    driver = Driver()
    driver.user("hello")
    response_id = driver.create()
    driver.step(response_id, "Hi", cached_tokens=4)
    usage = driver.step(response_id, " you", "stop")[-1]["response"]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_token_details"]["cached_tokens"] == 4
    assert usage["output_token_details"]["text_tokens"] == usage["output_tokens"]


# Whatever a client does


def check(driver: Driver) -> None:
    """What holds of all events a client has got."""
    events = driver.events
    ids = [event["event_id"] for event in events]
    assert len(set(ids)) == len(ids)
    created = [event["response"]["id"] for event in events if event["type"] == "response.created"]
    done = [event["response"]["id"] for event in events if event["type"] == "response.done"]
    assert len(set(created)) == len(created)
    assert len(set(done)) == len(done)
    assert set(done) <= set(created)
    for response_id in done:
        own = [event for event in events if event.get("response_id") == response_id]
        body = next(
            e["response"] for e in events if e["type"] == "response.done" and e["response"]["id"] == response_id
        )
        counted = [event for event in own if "x_seq" in event]
        assert [event["x_seq"] for event in counted] == list(range(1, len(counted) + 1))
        emitted = sum(event["x_spec"]["emitted"] for event in counted)
        assert emitted == body["usage"]["output_tokens"]
        for index, item in enumerate(body["output"]):
            text = "".join(e["delta"] for e in counted if e.get("item_id") == item["id"])
            (last,) = (e for e in own if e["type"] == "response.output_item.done" and e["output_index"] == index)
            assert last["item"] == item
            assert item.get("arguments", (item.get("content") or [{"text": ""}])[0]["text"]) == text


ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
MESSAGES: list[dict[str, Any]] = [
    {"type": "session.update", "session": {"instructions": "Be kind.", "temperature": 0.5}},
    {"type": "session.update", "session": {"audio": {}}},
    {"type": "session.update"},
    {"type": "conversation.item.create", "item": ITEM},
    {"type": "conversation.item.create", "item": {**ITEM, "id": "same"}},
    {"type": "conversation.item.create", "item": ITEM, "previous_item_id": "root"},
    {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "call_1", "output": "x"}},
    {"type": "conversation.item.create", "item": {"type": "audio"}},
    {"type": "conversation.item.retrieve", "item_id": "item_5"},
    {"type": "conversation.item.delete", "item_id": "same"},
    {"type": "conversation.item.delete", "item_id": "item_5"},
    {"type": "conversation.item.truncate", "item_id": "item_5", "x_text_end": 1},
    {"type": "conversation.item.truncate", "item_id": "item_7", "x_text_end": 0},
    {"type": "input_text.append", "text": "hello"},
    {"type": "input_text.append"},
    {"type": "input_text.clear"},
    {"type": "input_text.commit"},
    {"type": "response.create"},
    {"type": "response.create", "response": {"conversation": "none", "input": [ITEM]}},
    {"type": "response.create", "response": {"input": [{"type": "item_reference", "id": "same"}]}},
    {"type": "response.create", "response": {"max_output_tokens": "many"}},
    {"type": "response.cancel"},
    {"type": "response.cancel", "response_id": "resp_4"},
    {"type": "input_audio_buffer.append", "audio": ""},
    {"type": "nonsense"},
    {},
]
CREATES = [message for message in MESSAGES if message.get("type") == "response.create"]
TEXTS = ["Hi", "<think>", "</think>", call("f"), call("g")[:30], " ", "é", ""]
FINISHES: list[Finish | None] = [None, None, None, "stop", "length", "abort", "error"]
ACTS = st.one_of(
    st.sampled_from(MESSAGES),
    st.sampled_from(CREATES),
    st.tuples(st.integers(0, 3), st.sampled_from(TEXTS), st.sampled_from(FINISHES)),
    st.sampled_from(["begin", "begin", "begin", "refuse", "fail"]),
)


@given(acts=st.lists(ACTS, min_size=30, max_size=50))
@settings(max_examples=25, deadline=None)
def test_any_sequence_of_messages_keeps_the_promises(acts: list[Any]) -> None:
    driver = Driver(reader=calling, patient=True)
    driver.user("hello", id="same")
    for number, act in enumerate(acts):
        if isinstance(act, dict):
            events = driver.take(driver.session.receive(json.dumps({**act, "event_id": f"client_{number}"})))
            errors = [event["error"] for event in events if event["type"] == "error"]
            assert all(error["event_id"] == f"client_{number}" and error["message"].endswith(".") for error in errors)
        elif isinstance(act, str):
            driver.answer(act)  # type: ignore[arg-type]
        elif driver.replies:
            index, text, finish = act
            driver.step(list(driver.replies)[-1 - index % len(driver.replies)], text, finish)
    while driver.waiting:
        driver.answer("begin")
    for response_id in list(driver.replies):
        driver.step(response_id, "", "stop")
    assert driver.session.idle
    check(driver)
    created = types(driver.events).count("response.created")
    assert created == types(driver.events).count("response.done")
    begun = [begin.response_id for begin in driver.begun]
    assert created <= len(begun)
    assert {command.response_id for command in driver.commands if isinstance(command, Abort)} <= set(begun)
