from __future__ import annotations

from typing import Any

import pytest
from openai.types.beta.realtime.realtime_server_event import RealtimeServerEvent
from pydantic import TypeAdapter
from realtime_client import address, events_until, say, user
from realtime_session import Driver
from service import LiveServer
from websockets.sync.client import connect

from paceline.server.realtime_dialect import BETA, BETA_SUBPROTOCOL, GA, dialect_of


def a_turn() -> list[dict[str, Any]]:
    driver = Driver()
    driver.say("session.update", session={"modalities": ["text"], "max_response_output_tokens": 9})
    driver.user("hello")
    response_id = driver.create(modalities=["text"])
    driver.step(response_id, "Hi")
    driver.step(response_id, " you", "stop")
    driver.say("nonsense")
    return driver.events


def test_the_ga_interface_is_what_sessions_speak() -> None:
    for event in a_turn():
        assert GA.spell(event) == event


def test_the_beta_sdk_knows_every_event() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(RealtimeServerEvent)
    spelt = [event for event in map(BETA.spell, a_turn()) if event is not None]
    assert [event["type"] for event in spelt] == [
        "session.created",
        "session.updated",
        "conversation.item.created",
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.content_part.added",
        "response.text.delta",
        "response.text.delta",
        "response.text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
        "error",
    ]
    for event in spelt:
        if event["type"].startswith("session."):  # its models are those of one company: the type lists them by name
            event = {**event, "session": {**event["session"], "model": "gpt-realtime"}}
        assert adapter.validate_python(event).type == event["type"]


def test_bodies_as_the_beta_has_them() -> None:
    events = {event["type"]: event for event in map(BETA.spell, a_turn()) if event is not None}
    session = events["session.updated"]["session"]
    assert (session["modalities"], session["max_response_output_tokens"]) == (["text"], 9)
    assert not {"type", "output_modalities", "max_output_tokens"} & session.keys()
    response = events["response.done"]["response"]
    assert response["modalities"] == ["text"]
    assert response["output"][0]["content"] == [{"type": "text", "text": "Hi you"}]
    call = {"type": "conversation.item.added", "item": {"type": "function_call", "name": "f"}}
    assert BETA.spell(call) == {**call, "type": "conversation.item.created"}


@pytest.mark.parametrize(
    ("headers", "subprotocols", "dialect"),
    [
        ({}, (), GA),
        ({"openai-beta": "realtime=v1"}, (), BETA),
        ({"openai-beta": "assistants=v2, realtime=v1"}, (), BETA),
        ({"openai-beta": "assistants=v2"}, (), GA),
        ({}, ("realtime", BETA_SUBPROTOCOL), BETA),
        ({}, ("realtime", "openai-insecure-api-key.x"), GA),
    ],
)
def test_how_a_client_says_what_it_speaks(headers: dict[str, str], subprotocols: tuple[str, ...], dialect: Any) -> None:
    assert dialect_of(headers, subprotocols) is dialect


def test_a_beta_client_over_its_socket(live: LiveServer) -> None:
    with connect(address(live), proxy=None, additional_headers={"OpenAI-Beta": "realtime=v1"}) as connection:
        assert "modalities" in events_until(connection, "session.created")[-1]["session"]
        say(connection, "conversation.item.create", item=user("hello"))
        say(connection, "response.create", response={"modalities": ["text"], "max_response_output_tokens": 4})
        events = events_until(connection, "response.done")
        assert sum(event["type"] == "conversation.item.created" for event in events) == 2
        text = "".join(event["delta"] for event in events if event["type"] == "response.text.delta")
        assert [event["text"] for event in events if event["type"] == "response.text.done"] == [text]
