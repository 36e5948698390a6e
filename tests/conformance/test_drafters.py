"""The drafters that replies are compared over do guess, before it is known how seldom some of them are right."""

from __future__ import annotations

import pytest
from drafting_service import DRAFTERS
from every_protocol import Client
from neutral import Asked

SCHEMA = {"type": "object", "properties": {"city": {"const": "Žďár"}}, "required": ["city"]}
REPEATED = Asked(messages=(("user", "a line that is repeated; " * 12),), max_tokens=40)
FORMED = Asked(form={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}, max_tokens=40)


@pytest.mark.parametrize("mode", DRAFTERS)
def test_every_drafter_guesses(clients: dict[str, Client], mode: str) -> None:
    figures = clients["random"].figures(FORMED if mode == "grammar" else REPEATED, mode)
    assert figures["num_draft_tokens"] > 0
    assert figures["num_accepted_draft_tokens"] > 0 or mode not in ("suffix", "grammar", "draft")
