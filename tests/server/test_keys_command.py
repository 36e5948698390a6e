from __future__ import annotations

from pathlib import Path

import pytest

from paceline.server.cli import main
from paceline.server.key_file import hash_of, read_keys
from paceline.server.limits import Allowance


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["keys", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_key_from_its_making_to_its_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "keys.json"
    limits = ["--concurrency", "2", "--tokens-per-minute", "9000", "--priority", "normal"]
    code, key, err = run(capsys, "add", "anna", "--keys", str(path), *limits)
    assert (code, key.count("\n")) == (0, 1)
    assert "cannot be shown again" in err
    assert key.strip() not in err
    keys = read_keys(path)
    assert keys.records[0].hash == hash_of(key.strip(), keys.salt)
    assert keys.records[0].allowance == Allowance(concurrency=2, tokens_per_minute=9000, priority="normal")

    monkeypatch.setenv("PACELINE_KEYS", str(path))
    assert run(capsys, "add", "bert")[0] == 0
    code, out, _ = run(capsys, "list")
    anna, bert = out.splitlines()
    assert "2 replies at once  9000 tokens per minute  normal at best" in anna
    assert "any number of replies at once" in bert
    assert keys.records[0].hash not in out

    assert run(capsys, "remove", "anna") == (0, "", "")
    assert [record.name for record in read_keys(path).records] == ["bert"]
    code, out, err = run(capsys, "remove", "anna")
    assert (code, out) == (1, "")
    assert err.startswith("paceline: There is no key 'anna'")


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        (["add", "anna"], 2, "--keys"),
        (["add", "anna", "--keys", "{}", "--concurrency", "0"], 2, "--concurrency"),
        (["add", "a b", "--keys", "{}"], 1, "no name for a key"),
        (["list", "--keys", "{}"], 1, "paceline keys add"),
    ],
)
def test_mistakes_are_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: list[str], code: int, words: str
) -> None:
    result, out, err = run(capsys, *(part.format(tmp_path / "keys.json") for part in line))
    assert (result, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1
