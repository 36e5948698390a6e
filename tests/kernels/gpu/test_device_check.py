"""The program that measures a GPU, where there is none: every part at tiny sizes, and what it says without one."""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
BENCH = ROOT / "tests" / "bench"
PARTS = ("kernels", "equality", "bits", "rates", "steps")


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program's modules import each other by name; for no longer than a test may they be found by name."""
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("device_tools")


def device_check(results: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(BENCH), str(ROOT / "tests" / "support"), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, str(BENCH / "device_check.py"), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "BENCH_RESULTS": str(results), **environment},
    )


def test_every_part_runs_interpreted_and_nothing_is_recorded(tmp_path: Path) -> None:
    done = device_check(tmp_path, "--interpret")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "BAD" not in done.stdout
    ended = [
        line.partition(":")[0] for line in done.stdout.splitlines() if line.endswith(" s") and line.count(":") == 1
    ]
    assert tuple(ended) == PARTS
    assert done.stdout.splitlines()[-1].startswith("Interpreted on the CPU")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to measure")
def test_without_a_gpu_it_says_so(tmp_path: Path) -> None:
    done = device_check(tmp_path, TRITON_INTERPRET="0")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("torch sees no NVIDIA GPU here")
    assert done.stderr.count("\n") == 1


def test_parts_without_time_are_skipped_and_said(tmp_path: Path) -> None:
    done = device_check(tmp_path, "--interpret", "--only", "steps,bits", "--minutes", "0.1")
    assert done.returncode == 1
    assert "bits: skipped, " in done.stdout
    assert "steps: skipped, " in done.stdout


BREAKING = """
import os
from device_tools import Check

def case(name):
    if name == "dies":
        os._exit(3)
    return [Check(name, "", float(os.getpid()), float("inf"))], name != "spoils"
"""


def test_a_case_that_breaks_its_process_takes_no_other_along(
    tools: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands for an error here is the number of the process."""
    (tmp_path / "breaking.py").write_text(BREAKING, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    case = importlib.import_module("breaking").case
    workers = importlib.import_module("device_workers")
    names = ["good", "dies", "good", "spoils", "good"]
    checks = list(workers.in_processes(case, names, 1, 120.0))
    assert [check.op for check in checks] == names
    assert [check.ok for check in checks] == [True, False, True, True, True]
    first, _, second, spoilt, third = (check.error for check in checks)
    assert second == spoilt
    assert len({first, second, third}) == 3
    late = list(workers.in_processes(case, names, 1, 0.0))
    assert [check.note for check in late] == ["TimeoutError"] * len(names)


def test_a_section_that_breaks_is_told_and_keeps_its_figures(
    tools: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module("device_report")
    report = module.Report(tools.Machine(interpreted=True, minutes=1), "")

    def section() -> Iterator[Any]:
        yield tools.Figure("step", 3.0, "ms")
        raise RuntimeError("out of memory")

    for figure in report.guarded("steps", section()):
        report.figure("steps", figure)
    logging.getLogger("paceline.kernels").warning("no graphs")
    logging.getLogger().removeHandler(logging.getLogger().handlers[-1])
    assert [figure.name for _, figure in report.figures] == ["step"]
    assert report.broken == ["steps: broke off, RuntimeError: out of memory", "no graphs"]
    assert report.conclude() == 1
    assert "no graphs" in capsys.readouterr().out


def test_a_bar_is_reached_or_not_exceeded(tools: ModuleType) -> None:
    assert tools.Figure("x", 75.0, "%", tools.Bar(75, least=True)).held == "yes"
    assert tools.Figure("x", 74.9, "%", tools.Bar(75, least=True)).held == "NO"
    assert tools.Figure("x", 1.26, "times", tools.Bar(1.25)).held == "NO"
    assert tools.Figure("x", float("nan"), "times", tools.Bar(1.25)).held == "NO"
    assert tools.Figure("x", 3.0, "ms").held == ""
    assert not tools.Check("linear", "q4", float("nan"), 1.0).ok


def test_a_record_grows_and_keeps_its_columns(tools: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "new" / "device_check.csv"
    made = {"device": "H200", "commit": "abc"}
    figure = tools.Figure("step of 1 row, all told", 1.23456789, "ms", tools.Bar(1.25))
    for _ in range(2):
        tools.append(path, [tools.figure_row("steps", figure, made)])
    line = 'steps,"step of 1 row, all told",1.2346,ms,<= 1.25,yes,H200,abc'
    assert path.read_text(encoding="utf-8").splitlines() == [
        "part,figure,value,unit,bar,held,device,commit",
        line,
        line,
    ]
    with pytest.raises(SystemExit, match="holds a table with other columns"):
        tools.append(path, [{"other": 1}])


def test_bytes_of_a_packed_weight_are_those_of_its_tensors(tools: ModuleType) -> None:
    packing = importlib.import_module("paceline.kernels.gpu.packing")
    weight = packing.Weight(torch.zeros(3, 16, dtype=torch.int16), torch.zeros(3, 2), None, 64, torch.float16, 4, 32)
    assert tools.nbytes(weight) == 3 * 32 + 3 * 8


def test_large_weights_are_made_of_what_they_repeat(tools: ModuleType) -> None:
    """Rows of one matrix differ, and a matrix reads back as what its bytes say."""
    models = importlib.import_module("device_models")
    model = models.RandomModel(models.TINY)
    weights = model.load()
    part = weights.layers[0].gate_up.parts[0]
    values = torch.empty(part.shape)
    part.read(0, values.numpy())
    assert torch.equal(values, torch.from_numpy(part.raw()).view(torch.bfloat16).float())
    assert len(values.unique(dim=0)) == len(values)
    sizes = [part.shape[0] * part.shape[1] for part in weights.layers[0].gate_up.parts]
    assert model.pass_bytes > 2 * sum(sizes)
