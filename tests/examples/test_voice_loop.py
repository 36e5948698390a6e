"""examples/voice_loop.py against a live server."""

from __future__ import annotations

import ast
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from example_programs import EXAMPLES, load
from service import LiveServer, wait_until_idle

ROUND = re.compile(r"^round \d (with|without) append: .* (\d+) of (\d+) tokens known$", re.M)


def address(live: LiveServer) -> str:
    return f"ws://127.0.0.1:{live.port}/v1/realtime"


def test_the_comparison(live: LiveServer) -> None:
    """As a user starts it, with the transcript that it brings."""
    command = [sys.executable, EXAMPLES / "voice_loop.py", "--url", address(live)]
    options = ["--rounds", "1", "--speed", "100", "--max-tokens", "16"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    rounds = {way: (int(known), int(tokens)) for way, known, tokens in ROUND.findall(done.stdout)}
    assert set(rounds) == {"with", "without"}
    with_append, without = rounds["with"], rounds["without"]
    assert abs(with_append[1] - without[1]) <= 8  # the same words behind a number of another spelling
    assert with_append[0] > without[0]
    for measured in ("text", "clause"):
        told = re.search(
            rf"^last word to first {measured}: (\d+) ms with append, (\d+) ms without: ([\d.]+) times$",
            done.stdout,
            re.M,
        )
        assert told is not None, done.stdout
    wait_until_idle(live.service)


def test_breaking_in(live: LiveServer, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    asked = tmp_path / "asked.jsonl"
    asked.write_text('{"at_ms": 5, "text": "Good morning.", "final": true}\n', encoding="utf-8")
    load("voice_loop").main(["--url", address(live), "--barge-in", "--max-tokens", "1200", "--transcript", str(asked)])
    said = capsys.readouterr().out
    found = re.search(r"^the reply is (\w+); said: (.*)\nheard, and in the next prompt: (.*)\nthe next reply is", said)
    assert found is not None, said
    status, whole, heard = found[1], ast.literal_eval(found[2]), ast.literal_eval(found[3])
    assert status in ("cancelled", "completed")  # a tiny model may be done before the cancel comes
    assert whole.startswith(heard)
    assert 0 < len(heard) < len(whole)
    wait_until_idle(live.service)


def test_what_is_revised_is_taken_back() -> None:
    """Appended text between two clears is always the transcript as it was heard."""
    voice_loop = load("voice_loop")
    transcript = voice_loop.read(EXAMPLES / "transcript.jsonl", speed=1.0)
    sent: list[dict[str, str]] = []

    class Socket:
        def send(self, message: str) -> None:
            sent.append(json.loads(message))

    loop = voice_loop.VoiceLoop(Socket(), max_tokens=1, conversation="1")
    pending = ""
    for partial in transcript:
        before = len(sent)
        loop.hear(partial.text)
        for event in sent[before:]:
            pending = "" if event["type"] == "input_text.clear" else pending + event["text"]
        assert pending == partial.text
    assert sum(event["type"] == "input_text.clear" for event in sent) >= 5  # the transcript has revisions
    assert len(transcript[-1].text.split()) >= 60
    assert all(early.at_s < late.at_s for early, late in itertools.pairwise(transcript))


def test_a_transcript_without_an_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "open.jsonl"
    path.write_text('{"at_ms": 1, "text": "So"}\n', encoding="utf-8")
    with pytest.raises(SystemExit, match="no last line"):
        load("voice_loop").main(["--transcript", str(path)])
