"""The benchmark of the page, small: that it measures what it says, and holds it against a bar."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

BENCH = Path(__file__).parents[1] / "bench"


def test_the_heap_is_watched_in_every_way_to_come_by_many_tokens(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(BENCH)  # the programs import each other by name
    rows = importlib.import_module("page").memory_part(chromium, argparse.Namespace(tokens=400))
    names = ("one reply", "ten conversations", "one conversation, forty replies")
    assert [row["figure"] for row in rows] == [f"heap growth from 80 to 400 tokens, {name}, MB" for name in names]
    assert [(row["rounds"], row["bar"]) for row in rows] == [(1, 1), (10, 1), (40, 2)]
    assert chromium.contexts == []
