"""Resuming over real sockets: what breaks, who is told what, and what a stopping server leaves."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any

import pytest
from raw_sockets import frame, upgrade
from realtime_client import address, chatting, closing_code, events_until, say
from service import ENDLESS, LiveServer, is_idle, running_server, wait_for_tokens, wait_until, wait_until_idle
from websockets.sync.client import ClientConnection, connect

from paceline.server.context import Settings

RESUMABLE: dict[str, Any] = {"x_resume": True, **ENDLESS}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """Not the one of other tests: sessions wait in it to be resumed."""
    with running_server(tmp_path_factory.mktemp("resuming")) as live:
        yield live


def ask(connection: ClientConnection, **response: Any) -> tuple[str, list[dict[str, Any]]]:
    """The response's id, and the events up to its first delta."""
    say(connection, "response.create", response={**RESUMABLE, **response})
    events = events_until(connection, "response.output_text.delta")
    return next(event["response"]["id"] for event in events if event["type"] == "response.created"), events


def test_a_connection_breaks_and_another_goes_on(live: LiveServer) -> None:
    with chatting(live) as connection:
        response_id, got = ask(connection, max_output_tokens=60)
        connection.socket.close()
    with connect(address(live), proxy=None) as again:
        events_until(again, "session.created")
        say(again, "x_response.resume", response_id=response_id, starting_after=got[-1]["x_seq"])
        rest = events_until(again, "response.done")
        text = "".join(event["delta"] for event in got + rest if event["type"] == "response.output_text.delta")
        done = rest[-1]["response"]
        assert done["output"][0]["content"][0]["text"] == text
        assert done["usage"]["output_tokens"] == 60
        say(again, "response.create", response={"max_output_tokens": 2})  # the conversation has come along
        assert events_until(again, "response.done")[-1]["response"]["usage"]["input_tokens"] > 60


def test_a_takeover_tells_the_old_socket(live: LiveServer) -> None:
    with chatting(live) as stale, connect(address(live), proxy=None) as fresh:
        response_id, _ = ask(stale, max_output_tokens=60)
        say(fresh, "x_response.resume", response_id=response_id)
        assert closing_code(stale) == 4409
        assert stale.close_reason
        events_until(fresh, "response.done")


def test_keys_are_callers(tmp_path: Path) -> None:
    with running_server(tmp_path, Settings(api_keys=("ann", "bob"))) as live:

        def connected(key: str) -> ClientConnection:
            return connect(address(live), proxy=None, additional_headers={"Authorization": f"Bearer {key}"})

        with connected("ann") as first:
            say(first, "response.create", response={"instructions": "hi", "max_output_tokens": 4, **RESUMABLE})
            response_id = events_until(first, "response.done")[-1]["response"]["id"]
            first.socket.shutdown(SHUT_RDWR)
        with connected("bob") as other:
            say(other, "x_response.resume", response_id=response_id, event_id="mine")
            error = events_until(other, "error")[-1]["error"]
            assert (error["code"], error["param"], error["event_id"]) == ("response_not_found", "response_id", "mine")
        with connected("ann") as second:
            say(second, "x_response.resume", response_id=response_id)
            events_until(second, "response.done")


def test_a_stopping_server_waits_for_nobody_to_resume(tmp_path: Path) -> None:
    with running_server(tmp_path, Settings(drain_s=60), context_length=8192) as live:
        with chatting(live) as connection:
            ask(connection)
            connection.socket.close()
        wait_until(lambda: not live.server.server_state.connections)
        assert live.context.drain.busy == 1
        live.stop()
        live.join()
        wait_until_idle(live.service)
        assert live.service.loop.stats().generated_tokens < 8000


def test_who_never_reads_is_dropped_and_can_come_back(tmp_path: Path) -> None:
    """The reply goes on for as long as any other whose connection broke."""
    settings = Settings(client_patience_s=0.3, resume_s=0.5)
    with running_server(tmp_path, settings, small_buffers=True, context_length=8192) as live:
        with upgrade(live.port) as raw:
            response = {"instructions": "hi", **RESUMABLE}
            raw.sendall(frame(json.dumps({"type": "response.create", "response": response})))
            wait_for_tokens(live.service, 20)
            wait_until(lambda: not live.server.server_state.connections)
            assert not is_idle(live.service)
        wait_until_idle(live.service)
        assert live.context.drain.busy == 0
        assert live.service.loop.stats().generated_tokens < 8000


def test_compression_is_an_option(tmp_path: Path, live: LiveServer) -> None:
    with connect(address(live), proxy=None) as plain:
        assert plain.protocol.extensions == []
    with running_server(tmp_path, Settings(compress=True)) as packed, chatting(packed) as connection:
        assert [extension.name for extension in connection.protocol.extensions] == ["permessage-deflate"]
        say(connection, "response.create", response={"max_output_tokens": 20, **ENDLESS})
        events = events_until(connection, "response.done")
        text = "".join(event.get("delta", "") for event in events)
        assert events[-1]["response"]["output"][0]["content"][0]["text"] == text
        say(connection, "response.create", response={"instructions": "x" * 2000 + json.dumps(text)})
        assert events_until(connection, "error")[-1]["error"]["code"] == "context_length_exceeded"


def test_the_voice_loop_of_the_documentation(tmp_path: Path) -> None:
    """As it is written there: a turn, a connection that breaks, a user who breaks in, a turn after that."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "voice.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    spoken: list[str] = []
    with running_server(tmp_path, context_length=4096) as live:
        _voice_turns(live, names["VoiceLoop"](address(live), spoken.append, proxy=None), spoken)


def _voice_turns(live: LiveServer, loop: Any, spoken: list[str]) -> None:
    options = {"logit_bias": {"2": -100}, "max_output_tokens": 40, "seed": 1}

    loop.hear("hello ")
    loop.hear("there")
    whole = loop.answer(**options)["output"][0]["content"][0]["text"]
    assert "".join(spoken) == whole[: len("".join(spoken))]
    assert not whole[len("".join(spoken)) :].strip(" \n.,;:!?…*_`\"')]}>")

    del spoken[:]
    loop.hear("and then?")
    loop.socket.recv = _broken_after(8, loop.socket)
    done = loop.answer(**options)
    assert done["output"][0]["content"][0]["text"].startswith("".join(spoken))
    assert (done["id"], done["usage"]["output_tokens"]) == (loop.response_id, 40)
    assert loop.socket.protocol.state.name == "OPEN"

    made = live.service.loop.stats().generated_tokens
    user = threading.Thread(target=lambda: (wait_for_tokens(live.service, made + 20), loop.interrupt()))
    user.start()
    loop.hear("again")
    cut = loop.answer(logit_bias={"2": -100})
    user.join()
    assert cut["status"] == "cancelled"
    loop.heard(1)
    loop.hear("go on")
    assert loop.answer(max_output_tokens=2)["status"] in ("completed", "incomplete")
    loop.sockets.close()


def _broken_after(count: int, socket: ClientConnection) -> Any:
    """recv of a connection that breaks then."""
    receive, received = socket.recv, itertools.count()

    def recv() -> Any:
        if next(received) == count:  # what had arrived by then is still read, and a socket is shut down only once
            socket.socket.shutdown(SHUT_RDWR)
        return receive()

    return recv
