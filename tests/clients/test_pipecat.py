"""Pipecat's language-model services, in an environment of their own, against the real server over a tiny model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from client_programs import CONTEXT, need, reply, run, turns
from example_programs import EXAMPLES
from service import LiveServer, running_server

SHORT = {"seed": 7, "logit_bias": {"2": 2.5}, "max_completion_tokens": 400}  # as pipecat_turns.py asks


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    need("pipecat")
    with running_server(tmp_path_factory.mktemp("pipecat"), context_length=CONTEXT) as server:
        yield server


@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_turns_a_call_and_an_interruption(live: LiveServer, protocol: str) -> None:
    found = turns("pipecat_turns.py", live, protocol)
    said, after = "".join(found["said"]), "".join(found["after"])
    assert said == reply(live, "hello", **SHORT)
    assert after == reply(live, "hello", said, "and then?", **SHORT)
    assert len(found["said"] + found["after"]) > 2  # it streams
    assert found["call"]["name"] == "weather"
    assert found["call"]["arguments"]["city"] in ("Lima", "Nairobi", "Oslo")
    assert found["again"]  # after the interruption the same service goes on


def test_the_example(live: LiveServer) -> None:
    """Over chat: over the other protocol Pipecat takes a reply that is cut off for an error."""
    assert run(EXAMPLES / "pipecat_service.py", "--server", live.url, "--max-tokens", "40").strip()
