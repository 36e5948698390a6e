"""LiveKit's language models, in an environment of their own, against the real server over a tiny model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from client_programs import CONTEXT, need, reply, run, turns
from example_programs import EXAMPLES
from service import LiveServer, running_server

SHORT = {"seed": 7, "logit_bias": {"2": 2.5}, "max_completion_tokens": 400}  # as livekit_turns.py asks


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    need("livekit/plugins/openai")
    with running_server(tmp_path_factory.mktemp("livekit"), context_length=CONTEXT) as server:
        yield server


@pytest.mark.parametrize("protocol", ["chat", "responses"])
def test_turns_a_call_and_an_interruption(live: LiveServer, protocol: str) -> None:
    found = turns("livekit_turns.py", live, protocol)
    first, second, again = ("".join(found[turn]["said"]) for turn in ("first", "second", "again"))
    assert first == reply(live, "hello", **SHORT)
    assert second == reply(live, "hello", first, "and then?", **SHORT)
    assert again == reply(live, "hello", first, "and then?", second, "Once more.", **SHORT)
    assert all(found["cut"])
    (call,) = found["call"]["calls"]
    assert call["name"] == "weather"
    assert call["arguments"]["city"] in ("Lima", "Nairobi", "Oslo")
    assert (
        0 < found["second"]["known"] < found["second"]["read"]
    )  # what the turns have in common was not computed again


def test_the_example(live: LiveServer) -> None:
    assert run(EXAMPLES / "livekit_agent.py", "--server", live.url, "--max-tokens", "40").strip()
