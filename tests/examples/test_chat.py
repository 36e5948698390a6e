"""examples/chat.py against a live server."""

from __future__ import annotations

import re

import pytest
from example_programs import load
from service import LiveServer


def test_a_tool_is_called_and_its_answer_read(live: LiveServer, capsys: pytest.CaptureFixture[str]) -> None:
    load("chat").main(["What is the weather like in Oslo?", "--url", f"{live.url}/v1", "--max-tokens", "100"])
    said = capsys.readouterr().out
    called = re.search(r"^\[tool_calls\] (\d+) tokens read, \d+ written\ncalls weather (\{.*\})$", said, re.M)
    assert called is not None, said
    assert re.fullmatch(r'\{\s*"city":\s*"(Lima|Nairobi|Oslo)"\s*\}', called[2])
    assert re.search(r"\[(stop|length)\] \d+ tokens read, \d+ written\n$", said)


@pytest.mark.parametrize("arguments", ['{"city": "Atlantis"}', '{"city"', "[]"])
def test_a_call_that_makes_no_sense_is_answered(arguments: str) -> None:
    """The model reads what was wrong, and the program goes on."""
    answer = load("chat").answer({"name": "weather", "arguments": arguments})
    assert answer == f"There is no weather for {arguments}; the cities are Lima, Nairobi, Oslo."
