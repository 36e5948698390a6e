from __future__ import annotations

import csv
import io
import re
import statistics
import subprocess
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from paceline.engine.errors import ConfigError
from paceline.server.bench_client import Reply, SpeculationFigures
from paceline.server.bench_report import (
    Summary,
    append_csv,
    percentile,
    provenance,
    quantiles_ms,
    times_table,
    totals_table,
    write_json,
)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2))
def test_percentile_agrees_with_the_standard_library(values: list[float]) -> None:
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    for q in (20, 50, 80, 95):
        assert percentile(values, q) == pytest.approx(cuts[q - 1], abs=1e-6)
    assert percentile(values, 0) == min(values)
    assert percentile(values, 100) == max(values)


def test_quantiles_leave_out_what_is_unknown() -> None:
    assert quantiles_ms([0.002, None]) == {"p20": 2.0, "p50": 2.0, "p80": 2.0, "p95": 2.0}
    assert quantiles_ms([None]) == {}


def replies() -> list[Reply]:
    four_gaps = [0.1] * 4
    return [
        Reply(
            ttft=0.1,
            end=0.5,
            tokens=5,
            tokens_from="usage",
            gaps=four_gaps,
            prompt_tokens=7,
            cached_tokens=3,
            figures=SpeculationFigures(steps=2, drafted=6, accepted=3),
        ),
        Reply(ttft=0.1, end=0.1, tokens=1, tokens_from="usage", figures=SpeculationFigures(2, drafted=2, accepted=1)),
        Reply(tokens=3, error="no"),
    ]


def test_summary_counts_failures_apart_and_weights_acceptance_by_steps() -> None:
    summary = Summary.of(replies(), speculation="auto", concurrency=2, wall_s=2.0)
    assert (summary.requests, summary.errors, summary.output_tokens) == (3, 1, 6)
    assert (summary.prompt_tokens, summary.cached_tokens) == (7, 3)
    assert summary.tokens_per_s == 3.0
    assert summary.tpot["p50"] == 100.0  # the reply of one token has no time per output token
    assert summary.accepted_length == 2.0  # 4 accepted guesses in 4 steps, and the bonus token
    assert summary.draft_acceptance == 0.5
    assert summary.tokens_from == "usage"


def test_table_holds_every_run() -> None:
    console = Console(width=80, file=io.StringIO(), record=True)
    empty = Summary.of([Reply(error="no")], speculation="", concurrency=4, wall_s=1.0)
    runs = [Summary.of(replies(), speculation="auto", concurrency=2, wall_s=2.0), empty]
    console.print(totals_table(runs))
    console.print(times_table(runs))
    text = console.export_text()
    assert text.count("(not asked)") == 2
    assert re.search(r"auto .* 2 .* 2 .* 1 .* 6 .* 3\.0 .* 2\.00", text)
    assert re.search(r"TPOT .* 100\.0 .* 100\.0 .* 100\.0 .* 100\.0", text)
    assert max(map(len, text.splitlines())) <= 80


def test_csv_grows_under_one_header_and_refuses_another(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.csv"
    append_csv(path, [])
    assert not path.exists()
    append_csv(path, [{"a": 1, "b": "x,y"}])
    append_csv(path, [{"a": 2, "b": ""}, {"a": 3, "b": "z"}])
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [["a", "b"], ["1", "x,y"], ["2", ""], ["3", "z"]]
    with pytest.raises(ConfigError, match="other columns"):
        append_csv(path, [{"a": 1, "c": 2}])
    with pytest.raises(ConfigError, match="cannot be"):
        append_csv(tmp_path, [{"a": 1}])


def test_json_is_written_or_refused_in_one_sentence(tmp_path: Path) -> None:
    write_json(tmp_path / "x" / "out.json", {"a": [1, 2]})
    assert orjson.loads((tmp_path / "x" / "out.json").read_bytes()) == {"a": [1, 2]}
    with pytest.raises(ConfigError, match="cannot be written"):
        write_json(tmp_path, {})


def test_provenance_names_commit_and_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert provenance("a chip")["commit"] == ""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    clean = provenance("a chip")
    assert clean["device"] == "a chip"
    assert clean["commit"]
    (tmp_path / "f").write_text("")
    assert provenance()["commit"] == clean["commit"]
    subprocess.run(["git", "add", "f"], check=True)
    assert provenance()["commit"] == clean["commit"] + "+"
    assert provenance()["device"]
