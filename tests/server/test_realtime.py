"""The realtime socket as clients see it: the stock SDK, and conversations over plain WebSockets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from realtime_client import address, chatting, events_until, say, user
from realtime_session import REPLY
from service import ENDLESS, MODEL_ID, SOCKET, LiveServer, client_of, running_service, wait_until_idle
from websockets.sync.client import connect

from paceline.server.service import Service

# The stock SDK

# It opens its socket in a way that the websockets library wants replaced.
stock_sdk = pytest.mark.filterwarnings("ignore:connect.. must be used as a context manager:DeprecationWarning")


@stock_sdk
def test_sdk_session(live: LiveServer) -> None:
    with (
        openai.OpenAI(
            base_url=f"{live.url}/v1", websocket_base_url=f"ws://127.0.0.1:{live.port}/v1", api_key="unused"
        ) as sdk,
        sdk.realtime.connect(model=MODEL_ID) as connection,
    ):
        assert connection.recv().type == "session.created"
        connection.session.update(
            session={"type": "realtime", "output_modalities": ["text"], "instructions": "Be kind."}
        )
        assert connection.recv().type == "session.updated"
        connection.conversation.item.create(item=user("hello"))  # type: ignore[arg-type]
        assert [connection.recv().type for _ in range(2)] == ["conversation.item.added", "conversation.item.done"]
        connection.response.create(response={"max_output_tokens": 8, **ENDLESS})  # type: ignore[arg-type]
        seen = []
        text = ""
        for event in connection:
            seen.append(event.type)
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.output_text.done":
                assert event.text == text
            if event.type == "response.done":
                break
        assert event.response.usage is not None
        assert event.response.usage.output_tokens == 8
        order = [kind for i, kind in enumerate(seen) if i == 0 or seen[i - 1] != kind]
        assert order == list(dict.fromkeys(REPLY))  # deltas side by side count once
        connection.response.cancel()
        error = connection.recv()
        assert error.type == "error"
        assert error.error.code == "response_cancel_not_active"


@stock_sdk
def test_sdk_cancel(live: LiveServer, service: Service) -> None:
    with (
        openai.OpenAI(
            base_url=f"{live.url}/v1", websocket_base_url=f"ws://127.0.0.1:{live.port}/v1", api_key="unused"
        ) as sdk,
        sdk.realtime.connect(model="default") as connection,
    ):
        connection.conversation.item.create(item=user("hello"))  # type: ignore[arg-type]
        connection.response.create(response=ENDLESS)  # type: ignore[arg-type]
        done = []
        for event in connection:
            if event.type == "response.output_text.delta" and not done:
                connection.response.cancel()
                done.append(None)
            if event.type == "response.done":
                assert event.response.status == "cancelled"
                break
        wait_until_idle(service)
        connection.response.create(response={"max_output_tokens": 3})
        assert connection.recv().type == "response.created"


# A conversation


def test_the_second_turn_finds_the_first_in_the_cache(live: LiveServer) -> None:
    with chatting(live) as connection:
        say(connection, "response.create", response={"max_output_tokens": 30, "seed": 4})
        first = events_until(connection, "response.done")[-1]["response"]
        say(connection, "conversation.item.create", item=user("and?"))
        say(connection, "response.create", response={"max_output_tokens": 3})
        second = events_until(connection, "response.done")[-1]["response"]
        assert first["seed"] == 4
        assert second["usage"]["input_tokens"] > first["usage"]["total_tokens"]
        assert second["usage"]["input_token_details"]["cached_tokens"] >= 16


def test_speculation_changes_no_text_and_counts_add_up(live: LiveServer) -> None:
    texts = []
    with connect(address(live), proxy=None) as connection:
        for mode in ("none", "suffix"):
            response = {
                "conversation": "none",
                "input": [user("the cat sat on the mat; " * 6)],
                "max_output_tokens": 40,
                "temperature": 0,
                "speculation": {"mode": mode},
            }
            say(connection, "response.create", response=response)
            events = events_until(connection, "response.done")
            deltas = [event for event in events if event["type"] == "response.output_text.delta"]
            texts.append("".join(delta["delta"] for delta in deltas))
            done = events[-1]["response"]
            assert sum(delta["x_spec"]["emitted"] for delta in deltas) == done["usage"]["output_tokens"]
            assert done["output"][0]["content"][0]["text"] == texts[-1]
            drafted = sum(delta["x_spec"]["drafted"] for delta in deltas)
            assert drafted == done["metrics"]["speculative_decoding"]["num_draft_tokens"]
            assert (drafted > 0) == (mode == "suffix")
    assert texts[0] == texts[1]


def test_two_responses_side_by_side(live: LiveServer) -> None:
    with chatting(live) as connection:
        say(connection, "response.create", response={"max_output_tokens": 60, **ENDLESS})
        say(connection, "response.create", event_id="second")
        aside = {"conversation": "none", "input": [user("aside")], "max_output_tokens": 5}
        say(connection, "response.create", response=aside)
        events: list[dict[str, Any]] = []
        while sum(event["type"] == "response.done" for event in events) < 2:
            events += events_until(connection, "response.done")
        errors = [event["error"] for event in events if event["type"] == "error"]
        assert [(e["code"], e["event_id"]) for e in errors] == [("conversation_already_has_active_response", "second")]
        assert len({e["response"]["id"] for e in events if e["type"] == "response.done"}) == 2


def test_a_conversation_over_the_context_is_an_error_event(live: LiveServer) -> None:
    with connect(address(live), proxy=None) as connection:
        say(connection, "response.create", event_id="long", response={"input": [user("z" * 5000)]})
        error = events_until(connection, "error")[-1]["error"]
        assert (error["code"], error["event_id"]) == ("context_length_exceeded", "long")
        say(connection, "response.create", response={"input": [user("short")], "max_output_tokens": 2})
        events_until(connection, "response.done")


def test_a_full_queue_is_an_error_event(tmp_path: Path) -> None:
    with running_service(tmp_path, max_batch=1, queue_limit=1) as service, client_of(service) as client:
        with client.websocket_connect(SOCKET) as connection:
            beside = {"conversation": "none", "input": [user("hi")], **ENDLESS}
            for _ in range(6):
                connection.send_json({"type": "response.create", "response": beside})
            seen = []
            while "overloaded" not in seen:
                event = connection.receive_json()
                seen.append(event.get("error", {}).get("code"))
        wait_until_idle(service)


def test_a_call_and_the_reply_to_its_output(tmp_path: Path) -> None:
    tool = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    must = {"tool_choice": "required", "parallel_tool_calls": False, "seed": 1, "max_output_tokens": 200}
    with (
        running_service(tmp_path, context_length=1024) as service,
        client_of(service) as client,
        client.websocket_connect(SOCKET) as connection,
    ):

        def until_done() -> list[dict[str, Any]]:
            events = []
            while not events or events[-1]["type"] != "response.done":
                events.append(connection.receive_json())
            return events

        connection.send_json({"type": "session.update", "session": {"tools": [tool]}})
        connection.send_json({"type": "conversation.item.create", "item": user("hi")})
        connection.send_json({"type": "response.create", "response": must})
        events = until_done()
        done = events[-1]["response"]
        (call,) = [item for item in done["output"] if item["type"] == "function_call"]
        assert (done["status"], call["status"], call["name"]) == ("completed", "completed", "f")
        pieces = [event["delta"] for event in events if event["type"] == "response.function_call_arguments.delta"]
        assert "".join(pieces) == call["arguments"]
        assert isinstance(json.loads(call["arguments"]), dict)
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"}
        connection.send_json({"type": "conversation.item.create", "item": output})
        connection.send_json({"type": "response.create", "response": {"max_output_tokens": 2}})
        usage = until_done()[-1]["response"]["usage"]
        assert usage["input_tokens"] > done["usage"]["input_tokens"]
        assert usage["input_token_details"]["cached_tokens"] >= done["usage"]["input_tokens"] // 16 * 16
