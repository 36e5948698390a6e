from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console
from sse_server import Behaviour, create, running

from paceline.engine.errors import ConfigError
from paceline.server.bench import BenchOptions, run_bench


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    lines = [{"question_id": i, "category": "abc"[i % 3], "turns": [f"word{i}", f"again{i}"]} for i in range(6)]
    path.write_bytes(b"\n".join(orjson.dumps(line) for line in lines))
    return path


def bench(behaviour: Behaviour, prompts: Path, **settings: Any) -> tuple[int, str]:
    """Run against a server that behaves so; returns the exit code and all that was printed."""
    printed = io.StringIO()
    console = Console(width=250, file=printed)
    with running(create(behaviour)) as url:
        code = run_bench(BenchOptions(url=url, prompts=prompts, **settings), console, console)
    return code, printed.getvalue()


def test_each_concurrency_is_measured_and_recorded(prompts: Path, tmp_path: Path) -> None:
    behaviour = Behaviour(words=5, figures=True)
    target, table = tmp_path / "out.json", tmp_path / "out.csv"
    code, text = bench(
        behaviour, prompts, concurrency=(1, 3), max_tokens=4, json=target, csv=table, device="a chip", seed=7
    )
    assert code == 0
    assert "2.50" in text  # 6 accepted in 4 steps, and the bonus token
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["concurrency"], row["requests"], row["output_tokens"]) for row in rows] == [
        ("1", "6", "24"),
        ("3", "6", "24"),
    ]
    assert {row["device"] for row in rows} == {"a chip"}
    assert {row["model"] for row in rows} == {"echo-1"}
    record = orjson.loads(target.read_bytes())
    assert len(record["replies"]) == 12
    assert record["replies"][0]["text"]
    warm, *measured = behaviour.requests
    assert warm["max_tokens"] == 1
    assert len(measured) == 12
    assert all("speculation" not in request and request["seed"] == 7 for request in behaviour.requests)


def test_all_turns_carry_the_replies_so_far(prompts: Path) -> None:
    behaviour = Behaviour(words=1)
    code, _ = bench(behaviour, prompts, all_turns=True, limit=1)
    assert code == 0
    assert [message["content"] for message in behaviour.requests[-1]["messages"]] == ["word0", "word0\u2028 ", "again0"]


def test_compare_pairs_the_modes_and_counts_equal_texts(prompts: Path, tmp_path: Path) -> None:
    behaviour = Behaviour(words=3, figures=True)
    table = tmp_path / "out.csv"
    code, text = bench(behaviour, prompts, compare=True, csv=table, concurrency=(2,))
    assert code == 0
    assert "6 of 6 texts equal" in text
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["speculation"], row["equal_texts"]) for row in rows] == [("none", "6/6"), ("auto", "6/6")]
    measured = [request["speculation"]["mode"] for request in behaviour.requests if request["max_tokens"] > 1]
    assert [mode for mode, _ in itertools.groupby(measured)] == ["none", "auto", "none", "auto"]  # auto twice in a row
    primed = [request["messages"] for request in behaviour.requests[1:] if request["max_tokens"] == 1]
    assert len(primed) == 6


def test_compare_names_the_prompts_whose_text_differs(prompts: Path) -> None:
    code, text = bench(Behaviour(words=3, differ=True), prompts, compare=True, limit=3)
    assert code == 0
    assert "0 of 3 texts equal" in text
    assert text.count("differs: prompt") == 3
    assert "reported no speculation figures" in text


def test_plain_decoding_is_not_compared_with_itself(prompts: Path) -> None:
    behaviour = Behaviour()
    with pytest.raises(ConfigError, match="leave --speculation out, or name a drafter"):
        bench(behaviour, prompts, compare=True, speculation="none")
    assert behaviour.requests == []


def test_some_failures_are_shown_and_all_failing_is_an_exit_code(prompts: Path) -> None:
    code, text = bench(Behaviour(fail="word3"), prompts)
    assert code == 0
    assert "1 failed: HTTP 400: that prompt is not liked" in text
    code, text = bench(Behaviour(fail="word"), prompts)
    assert code == 1
    assert "6 failed" in text
    assert "The warm-up request failed" in text


def test_a_server_without_usage_is_said_to_be_one(prompts: Path) -> None:
    _, text = bench(Behaviour(usage=False, words=4), prompts)
    assert "tokens are counted as chunks" in text


def test_files_that_cannot_be_used_are_refused_before_anything_is_asked(prompts: Path, tmp_path: Path) -> None:
    table = tmp_path / "other.csv"
    table.write_text("x,y\n1,2\n")
    behaviour = Behaviour()
    with pytest.raises(ConfigError, match="other columns"):
        bench(behaviour, prompts, csv=table)
    with pytest.raises(ConfigError, match="cannot be written"):
        bench(behaviour, prompts, json=table / "in-a-file.json")
    assert behaviour.requests == []
