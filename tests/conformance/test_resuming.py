"""A connection may break at any event: what is resumed on another is, with what had come, the whole reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from every_protocol import Client
from neutral import Json, joined, timeless
from raw_sockets import reset
from realtime_client import events_until, say, user
from speaking_model import Scripts
from talks import last_seq

OPENINGS = Scripts().openings
TOOLS = [{"type": "function", "name": name} for name in ("look_up", "add")]
LAST = "response.done"


def asked(script: str, **more: Any) -> Json:
    """The draft model is right about all of it: several tokens leave at once, or are spread by the pacing."""
    return {
        "x_resume": True,
        "logit_bias": {str(OPENINGS[script]): 10},
        "temperature": 0.0,
        "seed": 4,
        "tools": TOOLS,
        "speculation": {"mode": "draft"},
        **more,
    }


CASES = {
    "calls": asked("calls"),
    "a call that is cut off": asked("call", max_output_tokens=19),
    "thoughts, then a call": asked("thoughtful call"),
    "paced words": asked("words", voice={"pace": True, "clauses": True}, speculation={"mode": "draft", "max_nodes": 4}),
    "paced thoughts": asked("thoughts", voice={"pace": True}),
}


def told(events: list[Json]) -> Any:
    """What a client knows in the end: events that came twice count once. Clauses have no fixed place among the others,
    and a client that is behind goes without them."""
    once = {event["event_id"]: event for event in events}
    return joined(timeless([event for event in once.values() if event["type"] != "x_response.clause"]))


def begun(client: Client, socket: Any, response: Json) -> list[Json]:
    say(socket, "response.create", response={**response, "conversation": "none", "input": [user("hi there")]})
    return events_until(socket, "response.created")[-1:]


@pytest.mark.parametrize("name", CASES)
def test_a_drop_at_every_event(clients: dict[str, Client], name: str) -> None:
    client, got = clients["speaking"], 0
    with client.connect("realtime") as socket:
        whole = begun(client, socket, CASES[name]) + events_until(socket, LAST)
    assert len([event for event in whole if "delta" in event]) > 1
    complete = False
    while not complete:
        with client.connect("realtime") as socket:
            events = begun(client, socket, CASES[name])
            while len(events) <= got and not complete:
                events.append(json.loads(socket.recv(timeout=30)))
                complete = events[-1]["type"] == LAST
            reset(socket.socket)
        with client.connect("realtime") as socket:
            socket.recv(timeout=30)
            say(socket, "x_response.resume", response_id=events[0]["response"]["id"], starting_after=last_seq(events))
            events += events_until(socket, LAST)
        assert told(events) == told(whole), got
        got += 1
    assert got > len(CASES)
