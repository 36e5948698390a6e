"""What a client says to a running response, read and told."""

from __future__ import annotations

from typing import Any

import pytest
from responses_api import validate

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.fields import Fields
from paceline.server.responses.items import Message
from paceline.server.responses.output_items import Calls
from paceline.server.responses.steering import Steer, read_steer, read_steer_items, refused

STEER = Steer("steer_1", "resp_1", "quick", (Message("", "user", "quick"),))


def test_every_event_is_one_the_sdk_knows() -> None:
    call = Calls("fc_1", 0, "call_1", "look")
    for event in (
        STEER.accepted(),
        STEER.pending([call]),
        STEER.failed("response_not_active", "Too late."),
        refused("resp_1", [], "invalid_input", "What?"),
    ):
        validate({**event, "sequence_number": 0}, socket=True)
    assert "id" not in refused("resp_1", "x", "invalid_input", "What?")["steer"]
    assert STEER.failed("a", "b")["steer"] == {"id": "steer_1", "previous_response_id": "resp_1", "input": "quick"}


def test_reading() -> None:
    fields = Fields({"previous_response_id": "resp_1", "input": "quick"})
    assert read_steer(fields) == ("resp_1", "quick")
    assert read_steer_items(fields, 5) == (Message("", "user", "quick"),)


@pytest.mark.parametrize(
    "value", [{"input": "x"}, {"previous_response_id": "a"}, {"previous_response_id": "a", "input": []}]
)
def test_nothing_to_give_back(value: dict[str, Any]) -> None:
    with pytest.raises((RequestError, ApiError)):
        read_steer(Fields(value))


@pytest.mark.parametrize(
    "item",
    [
        {"role": "assistant", "content": "x"},
        {"role": "system", "content": "x"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"type": "computer_call"},
    ],
)
def test_users_messages_alone(item: dict[str, Any]) -> None:
    with pytest.raises((RequestError, ApiError)):
        read_steer_items(Fields({"input": [item]}), 5)
