"""examples/realtime.py against a live server."""

from __future__ import annotations

import re

import pytest
from example_programs import load
from service import LiveServer, wait_until_idle

ENDING = re.compile(r"^\[(\w+)\] (\d+) tokens read, (\d+) of them known, (\d+) written$", re.M)


def test_two_turns(live: LiveServer, capsys: pytest.CaptureFixture[str]) -> None:
    load("realtime").main(["--url", f"{live.url}/v1", "--max-tokens", "300"])
    first, second = ENDING.findall(capsys.readouterr().out)
    assert first[0] in ("completed", "incomplete")
    assert int(first[2]) > 0  # computed while it was written
    assert int(second[1]) > int(first[1])  # the conversation goes on
    assert second[0] == "cancelled" or int(second[3]) < 300  # a tiny model may have ended by itself
    wait_until_idle(live.service)


def test_a_mistake_is_told(live: LiveServer) -> None:
    with pytest.raises(RuntimeError, match="max_output_tokens"):
        load("realtime").main(["--url", f"{live.url}/v1", "--max-tokens", "-1"])
    wait_until_idle(live.service)
