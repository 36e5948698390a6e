from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from paceline.server import terminal
from paceline.server.terminal import fetch_progress, output, say_error


def test_errors_are_plain_text_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    say_error("No [bold]markup[/bold] in /a/path[0].")
    captured = capsys.readouterr()
    assert captured.err == "paceline: No [bold]markup[/bold] in /a/path[0].\n"
    assert captured.out == ""


def test_long_lines_are_not_broken(capsys: pytest.CaptureFixture[str]) -> None:
    output().print("word " * 100)
    assert capsys.readouterr().out.count("\n") == 1


def test_progress_is_silent_until_something_is_fetched(capsys: pytest.CaptureFixture[str]) -> None:
    with fetch_progress():
        pass
    assert capsys.readouterr() == ("", "")


def test_progress_shows_each_stage_and_copes_with_an_unknown_size(capsys: pytest.CaptureFixture[str]) -> None:
    with fetch_progress() as report:
        report("download", 0, 0)
        report("download", 10, 20)
        report("unpack", 20, 20)
    shown = capsys.readouterr()
    assert "download" in shown.err
    assert "unpack" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(("arrived", "promised"), [((0, 300, 681), False), ((0, 2**20, 2**21), True)])
def test_no_end_is_promised_before_bytes_flow(
    monkeypatch: pytest.MonkeyPatch, arrived: tuple[int, ...], promised: bool
) -> None:
    """Offline, pip's complaints about the network are all that arrives."""
    screen = io.StringIO()
    monkeypatch.setattr(terminal, "notices", lambda: Console(file=screen, force_terminal=True, width=120))
    with fetch_progress() as report:
        for done in arrived:
            report("download", done, 92_871_040)
    assert "download" in screen.getvalue()
    assert bool(re.search(r"\d:\d\d:\d\d", screen.getvalue())) == promised
