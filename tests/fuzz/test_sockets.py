"""Whatever is sent over a socket gets its events or one clear error, on a session that lives."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from fuzzing import Json, check_at_rest, check_error, parsed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import mutated, texts
from realtime_client import closing_code
from service import LiveServer
from websockets.sync.client import ClientConnection, connect

BATCH = 16  # messages of one session
AMOUNTS = (320, pytest.param(20_000, marks=pytest.mark.proof))

_USER = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
_REALTIME: list[Json] = [
    {"type": "response.create"},
    {"type": "response.create", "event_id": "e1", "response": {"max_output_tokens": 3, "metadata": {"a": "b"}}},
    {"type": "response.create", "response": {"conversation": "none", "input": [_USER], "max_output_tokens": 4}},
    {
        "type": "response.create",
        "response": {
            "conversation": "none",
            "input": [_USER, {"type": "item_reference", "id": "item_a"}],
            "instructions": "be",
            "max_output_tokens": 2,
            "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
            "tool_choice": "auto",
            "seed": 3,
            "speculation": {"mode": "suffix", "max_nodes": 4},
        },
    },
    {
        "type": "response.create",
        "response": {
            "x_resume": True,
            "max_output_tokens": 3,
            "voice": {"clauses": True, "pace": False, "timestamps": True},
        },
    },
    {"type": "response.create", "response": {"max_output_tokens": 6, "response_format": {"type": "json_object"}}},
    {"type": "response.cancel"},
    {"type": "response.cancel", "response_id": "resp_none"},
    {"type": "session.update", "session": {"type": "realtime", "output_modalities": ["text"], "instructions": "x"}},
    {
        "type": "session.update",
        "session": {"type": "realtime", "max_output_tokens": 4, "temperature": 0.3, "tools": []},
    },
    {"type": "conversation.item.create", "item": {**_USER, "id": "item_a"}},
    {"type": "conversation.item.create", "item": _USER, "previous_item_id": "root", "event_id": "e2"},
    {
        "type": "conversation.item.create",
        "item": {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"},
    },
    {"type": "conversation.item.create", "item": {"type": "function_call_output", "call_id": "c", "output": "r"}},
    {
        "type": "conversation.item.create",
        "item": {
            "type": "message",
            "role": "assistant",
            "id": "item_b",
            "content": [{"type": "output_text", "text": "said 🎉"}],
        },
    },
    {"type": "conversation.item.retrieve", "item_id": "item_a"},
    {"type": "conversation.item.delete", "item_id": "item_a"},
    {"type": "conversation.item.truncate", "item_id": "item_b", "content_index": 0, "x_text_end": 2},
    {"type": "input_text.append", "text": "some words "},
    {"type": "input_text.append", "text": "and 🎉"},
    {"type": "input_text.clear"},
    {"type": "input_text.commit"},
    {"type": "x_response.resume", "response_id": "resp_none", "starting_after": 0},
    {"type": "input_audio_buffer.append", "audio": "AAAA"},
    {"type": "nobody.knows"},
]
_LANE = {"type": "response.create", "input": "hi", "max_output_tokens": 3}
_RESPONSES: list[Json] = [
    _LANE,
    {**_LANE, "stream_id": "a", "store": False},
    {**_LANE, "stream_id": "b", "generate": False},
    {**_LANE, "stream_id": "b", "prompt_cache_options": {"prewarm": True}, "previous_response_id": "resp_none"},
    {
        **_LANE,
        "input": [{"role": "user", "content": "x"}],
        "instructions": "be",
        "temperature": 0.4,
        "seed": 2,
        "event_id": "e",
    },
    {**_LANE, "tools": [{"type": "function", "name": "f"}], "tool_choice": "auto", "parallel_tool_calls": True},
    {**_LANE, "text": {"format": {"type": "json_object"}}, "max_output_tokens": 6, "truncation": "auto"},
    {"type": "response.create", "input": "on and on", "stream_id": "a"},
    {"type": "response.cancel"},
    {"type": "response.cancel", "stream_id": "a"},
    {"type": "response.cancel", "response_id": "resp_none"},
    {"type": "response.steer", "previous_response_id": "resp_none", "input": "more"},
    {"type": "response.steer", "previous_response_id": "resp_none", "input": [{"role": "user", "content": "more"}]},
    {"type": "nobody.knows"},
]
EXTRA = (
    *("event_id", "response", "session", "item", "previous_item_id", "item_id", "text", "x_text_end", "stream_id"),
    *("input", "conversation", "instructions", "tools", "tool_choice", "metadata", "previous_response_id", "generate"),
    *("temperature", "logit_bias", "stop", "seed", "max_output_tokens", "speculation", "voice", "store", "model"),
)
_MARKER = "the marker"


@dataclass
class Caller:
    """What a client of one protocol sends and counts.

    opening: what each session begins with. mark: a message that is refused with its `event_id`. valid: one that must
    bring a whole response at any time. ended: types of the events that end a response.
    """

    path: str
    messages: list[Json]
    opening: list[Json]
    mark: Json
    valid: Json
    ended: tuple[str, ...]
    cancel: Callable[[str], Json]
    texts: st.SearchStrategy[str] = field(init=False)

    def __post_init__(self) -> None:
        self.texts = texts(mutated(self.messages, EXTRA))


CALLERS = {
    "realtime": Caller(
        path="realtime",
        messages=_REALTIME,
        opening=[each for each in _REALTIME if each.get("item", {}).get("id")],
        mark={"type": "conversation.item.retrieve", "item_id": "no such item"},
        valid={
            "type": "response.create",
            "response": {
                "conversation": "none",
                "input": [_USER],
                "max_output_tokens": 2,
                "tools": [],
                "tool_choice": "auto",
            },
        },
        ended=("response.done",),
        cancel=lambda id_: {"type": "response.cancel", "response_id": id_},
    ),
    "responses": Caller(
        path="responses",
        messages=_RESPONSES,
        opening=_RESPONSES[:2],
        mark={"type": "response.cancel", "response_id": "no such response"},
        valid={**_LANE, "stream_id": "the valid one"},
        ended=("response.completed", "response.incomplete", "response.failed"),
        cancel=lambda id_: {"type": "response.cancel", "response_id": id_},
    ),
}


class Session:
    """One socket, and what came over it."""

    def __init__(self, connection: ClientConnection, caller: Caller) -> None:
        self._connection = connection
        self._caller = caller
        self.running: set[str] = set()
        self.known: list[str] = []  # ids of responses so far

    def say(self, message: Json) -> None:
        self._connection.send(json.dumps(message))

    def throw(self, text: str) -> None:
        """Now and then a message names a response that there is."""
        self._connection.send(text.replace("resp_none", self.known[-1]) if self.known else text)

    def read(self, sent: Any = None) -> Json:
        event: Json = json.loads(self._connection.recv(timeout=300))
        kind = event["type"]
        if kind == "error":
            check_error(event["error"], None if _event_id(event) == _MARKER else sent)
        elif kind == "response.created":
            assert event["response"]["id"] not in self.known
            self.known.append(event["response"]["id"])
            self.running.add(event["response"]["id"])
        elif kind in self._caller.ended:
            self.running.remove(event["response"]["id"])
            assert event["response"]["status"] in ("completed", "cancelled", "incomplete"), event
        return event

    def read_all(self, sent: Any = None) -> None:
        """Until the server has seen everything that was sent."""
        self.say({**self._caller.mark, "event_id": _MARKER})
        while _event_id(self.read(sent)) != _MARKER:
            pass

    def settle(self) -> None:
        """Until no response runs: those that wait begin, and are cancelled too."""
        self.read_all()
        while self.running:
            for each in tuple(self.running):
                self.say(self._caller.cancel(each))
            self.read_all()


def _event_id(event: Json) -> Any:
    return event.get("event_id") if event["type"] != "error" else event["error"].get("event_id", event.get("event_id"))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("name", CALLERS)
def test_any_message_is_answered(live: LiveServer, name: str, amount: int) -> None:
    """Some are answered before the next is sent, some are sent at once; some sessions end with a drop."""
    caller = CALLERS[name]
    message = st.tuples(caller.texts, st.booleans())

    @settings(max_examples=amount // BATCH, suppress_health_check=list(HealthCheck), database=None)
    @given(st.lists(message, min_size=BATCH, max_size=BATCH), st.booleans())
    def throw(batch: list[tuple[str, bool]], drop: bool) -> None:
        with session_of(live, caller) as connection:
            session = Session(connection, caller)
            for each in caller.opening:
                session.say(each)
            for text, wait in batch:
                session.throw(text)
                if wait:
                    session.read_all(parsed(text))
            if not drop:
                session.settle()
                session.say(caller.valid)
                while session.read()["type"] not in caller.ended:
                    pass
        check_at_rest(live)

    throw()


@pytest.mark.parametrize("name", CALLERS)
@pytest.mark.parametrize(
    ("message", "code"), [(b"\x00\x01", 1003), ("x" * (1 << 20) + "y", 1009)], ids=["binary", "long"]
)
def test_what_is_no_message_ends_that_session_alone(
    live: LiveServer, name: str, message: str | bytes, code: int
) -> None:
    caller = CALLERS[name]
    with session_of(live, caller) as other, session_of(live, caller) as connection:
        connection.send(json.dumps(caller.valid))
        connection.send(message)
        assert closing_code(connection) == code
        session = Session(other, caller)
        session.say(caller.valid)
        session.settle()
    check_at_rest(live)


def session_of(live: LiveServer, caller: Caller) -> ClientConnection:
    return connect(f"ws://127.0.0.1:{live.port}/v1/{caller.path}", proxy=None, close_timeout=5, max_queue=None)
