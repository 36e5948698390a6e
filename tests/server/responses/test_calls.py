"""Responses that call tools, over HTTP and sockets; the calls are made to come, as a random model makes none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from realtime_client import events_until, say
from responses_api import RESPONSES, check_stream, output_text, post, streamed
from service import client_of, live_server, running_service
from starlette.testclient import TestClient
from websockets.sync.client import connect

from paceline.server.service import Service

LOOK = {
    "type": "function",
    "name": "look",
    "description": "Looks.",
    "parameters": {"type": "object", "properties": {"up": {"type": "boolean"}}, "required": ["up"]},
}


@pytest.fixture(scope="module")
def roomy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """With room for tools in the prompt."""
    with running_service(tmp_path_factory.mktemp("service"), context_length=2048) as service:
        yield service


@pytest.fixture
def client(roomy: Service) -> Iterator[TestClient]:
    with client_of(roomy) as client:
        yield client


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "look"}], ids=str)
def test_a_call_that_must_come(client: TestClient, choice: Any) -> None:
    asked: dict[str, Any] = {"tools": [LOOK], "tool_choice": choice, "parallel_tool_calls": False}
    events = streamed(client, **asked, max_output_tokens=120, input="hi")
    response = events[-1]["response"]
    assert response["status"] == "completed"
    (call,) = [item for item in response["output"] if item["type"] == "function_call"]
    assert call["name"] == "look"
    assert isinstance(json.loads(call["arguments"])["up"], bool)
    pieces = [e["delta"] for e in events if e["type"] == "response.function_call_arguments.delta"]
    assert "".join(pieces) == call["arguments"]
    assert response["tools"][0]["name"] == "look"
    answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "the sky"}
    after = post(client, input=[answer], previous_response_id=response["id"], tools=[LOOK]).json()
    spelled = post(client, input=[{"role": "user", "content": "hi"}, call, answer], tools=[LOOK]).json()
    assert after["usage"]["input_tokens"] == spelled["usage"]["input_tokens"]
    assert output_text(after) == output_text(spelled)


def test_sdk(roomy: Service) -> None:
    with (
        live_server(roomy) as live,
        openai.OpenAI(base_url=f"{live.url}/v1", api_key="unused") as sdk,
        sdk.responses.stream(
            model="default",
            input="hi",
            tools=[{**LOOK, "strict": False}],  # type: ignore[list-item]
            tool_choice="required",
            parallel_tool_calls=False,
            max_output_tokens=120,
            extra_body={"seed": 1},
        ) as stream,
    ):
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert "response.function_call_arguments.done" in kinds
    call = final.output[-1]
    assert call.type == "function_call"
    assert call.name == "look"


def test_a_call_over_a_socket_is_answered_in_its_lane(roomy: Service) -> None:
    with live_server(roomy) as live, connect(f"ws://127.0.0.1:{live.port}{RESPONSES}", proxy=None) as connection:
        tools: dict[str, Any] = {"tools": [LOOK], "store": False, "stream_id": "a", "seed": 1}
        say(connection, "response.create", input="hi", tool_choice="required", parallel_tool_calls=False, **tools)
        events = events_until(connection, "response.completed")
        check_stream(events, merged=True)
        response = events[-1]["response"]
        call = response["output"][-1]
        answer = {"type": "function_call_output", "call_id": call["call_id"], "output": "the sky"}
        say(
            connection,
            "response.create",
            input=[answer],
            previous_response_id=response["id"],
            tool_choice="none",
            max_output_tokens=3,
            **tools,
        )
        assert events_until(connection, "response.created")[-1]["response"]["previous_response_id"] == response["id"]
