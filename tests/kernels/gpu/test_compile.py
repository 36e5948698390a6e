"""Every kernel compiles for every GPU it is meant for, spills nothing, fits, and takes what the record says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.kernels.gpu.variants import launching

pytest.importorskip("triton")

BENCH = Path(__file__).resolve().parents[2] / "bench"


# Each takes seconds a kernel: one target is looked at in every run of the tests, the others when proofs are run.
TARGETS = ("sm_90", *(pytest.param(target, marks=pytest.mark.proof) for target in ("sm_80", "gfx942")))


@pytest.mark.timeout(900)  # half a minute of a processor for the largest, and processors are shared
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("module", launching())
def test_kernels_compile_as_recorded(module: str, target: str) -> None:
    """In a process of its own, where nothing interprets them. `make compile-table` records what changed."""
    environment = {name: value for name, value in os.environ.items() if name != "BENCH_RESULTS"}
    environment["PYTHONPATH"] = os.pathsep.join([str(BENCH), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = subprocess.run(
        [
            sys.executable,
            BENCH / "compile_table.py",
            "--check",
            "--only",
            f"{module}/",
            "--target",
            target,
            "--jobs",
            "1",
        ],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert not result.stderr
    assert result.returncode == 0, result.stdout


def test_the_record_has_no_other_modules() -> None:
    lines = (BENCH / "results" / "compile.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert {line.partition("/")[0] for line in lines} == set(launching())
