"""The programs in the text of README.md and docs/, run as they stand there but for the address."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from service import LiveServer, wait_until_idle

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = "127.0.0.1:8377"  # of a server that is told nothing else
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
# docs/voice.md has a class, which tests/server/test_realtime_connection.py uses.
PROGRAMS = [
    pytest.param(program, id=f"{page}-{number}")
    for page in ("README.md", "docs/responses.md")
    for number, program in enumerate(PROGRAM.findall((ROOT / page).read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_run(program: str, live: LiveServer) -> None:
    assert ADDRESS in program
    names: dict[str, Any] = {}
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(program.replace(ADDRESS, f"127.0.0.1:{live.port}"), names)
    finally:
        if "client" in names:
            names["client"].close()
    if "event" in names:
        assert names["event"]["type"] == "response.done"
    assert printed.getvalue() or "print(" not in program
    wait_until_idle(live.service)


def test_the_socket_is_shown() -> None:
    """README.md begins with all there is: chat completions and the conversation socket."""
    programs = PROGRAM.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert ["chat.completions" in program for program in programs] == [True, False]
    assert "/v1/realtime" in programs[1]


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_addresses_are_those_of_the_server(page: str) -> None:
    """A program that is copied out of a page finds the server that `paceline serve` starts."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert set(re.findall(r"(?:localhost|127\.0\.0\.1):\d+", text)) <= {ADDRESS}


@pytest.mark.parametrize("page", ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_files_that_are_named_are_there(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name in re.findall(r"(?<![\w/-])(?:docs/)?[a-z-]+\.md\b", text):
        assert any((folder / name).is_file() for folder in (ROOT, ROOT / "docs", (ROOT / page).parent)), name
