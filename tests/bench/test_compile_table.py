"""The program that compiles kernels for GPUs: what it finds wrong, what it records, what it compares.

It runs in processes of its own: here Triton interprets.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")

TESTS = Path(__file__).resolve().parent.parent
PROGRAM = """
import os
import aot, compile_table
import odd_kernels as odd
compile_table.all_variants = lambda: {variants}
{more}
compile_table.as_command(lambda: compile_table.main(compile_table.arguments()))
"""


class Program:
    """Runs the program over a few odd kernels, with a table of its own."""

    def __init__(self, folder: Path) -> None:
        self.table = folder / "compile.csv"

    def __call__(self, variants: str, *arguments: str, more: str = "") -> tuple[int, list[str]]:
        """Its status and the lines it printed; `more` is run before it."""
        path = [TESTS / "bench", TESTS / "support", *filter(None, [os.environ.get("PYTHONPATH")])]
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM.format(variants=variants, more=more), *arguments],
            env=os.environ | {"BENCH_RESULTS": str(self.table.parent), "PYTHONPATH": os.pathsep.join(map(str, path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return result.returncode, result.stdout.splitlines()


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_a_table_is_recorded_and_held(program: Program) -> None:
    assert program("[odd.well(), odd.well('less', targets=('sm_90',))]")[0] == 0
    header, *rows = program.table.read_text().splitlines()
    assert header == "variant,target,registers,spilled_bytes,stack_bytes,shared_bytes,tensor_core,triton"
    assert [row.split(",")[:2] for row in rows] == [
        ["less", "sm_90"],
        ["well", "sm_80"],
        ["well", "sm_90"],
        ["well", "gfx942"],
    ]
    for row in rows:
        registers, spilled, stack, shared, tensor_core = map(int, row.split(",")[2:7])
        assert registers
        assert not spilled
        assert not stack
        assert shared >= 2 * 2 * 64 * 64 / 2  # two blocks of bf16, one of them perhaps in registers
        assert tensor_core

    # As another compiler would have it: fewer registers on one target, no tensor cores on another, one row not there.
    columns = rows[1].split(",")
    columns[2] = str(int(columns[2]) - 1)
    program.table.write_text("\n".join([header, ",".join(columns), *rows[2:3], "gone,sm_80,1,0,0,0,0," + columns[7]]))
    status, said = program("[odd.well(), odd.well('less', targets=('sm_90',))]", "--check")
    assert status == 1
    assert said == [
        "gone on sm_80 is recorded, but was not compiled.",
        "less on sm_90 is not recorded.",
        "well on gfx942 is not recorded.",
        f"well on sm_80 has changed: registers {columns[2]} -> {int(columns[2]) + 1}.",
        f"4 compiled with Triton {columns[7]}, 4 wrong.",
    ]


def test_a_part_is_recorded_beside_the_rest(program: Program) -> None:
    assert program("[odd.well()]", "--target", "sm_80", "--target", "sm_90")[0] == 0
    both = program.table.read_text()
    assert program("[odd.well()]", "--only", "ell", "--target", "sm_80", "--jobs", "1")[0] == 0
    assert program.table.read_text() == both
    assert program("[odd.well()]", "--only", "unwell") == (
        1,
        ["paceline: No variant's name contains 'unwell'; run without --only to compile them all."],
    )


def test_another_compiler_is_held_to_the_limits_alone(program: Program) -> None:
    """What it takes differs, not whether it uses tensor cores; and one table is of one compiler."""
    header = "variant,target,registers,spilled_bytes,stack_bytes,shared_bytes,tensor_core,triton"
    rows = ["well,sm_80,7,0,0,0,1,2.9", "well,sm_90,7,0,0,0,0,2.9"]
    program.table.write_text("\n".join([header, *rows]))
    status, said = program("[odd.well()]", "--check", "--target", "sm_80", "--target", "sm_90")
    assert status == 1
    assert said[:2] == [
        "Recorded with Triton 2.9: only limits and use of tensor cores are compared.",
        "well on sm_90 has changed: uses tensor cores False -> True.",
    ]
    status, said = program("[odd.well()]", "--target", "sm_80")
    assert status == 1
    assert "record it as a whole" in said[0]


def test_what_is_wrong_is_said_by_name_and_hides_nothing(program: Program) -> None:
    status, said = program("[odd.refused(), odd.spilling(), odd.too_much_shared(), odd.well(targets=('sm_80',))]")
    assert status == 1
    *recorded, summary = [line for line in said if " on " in line or "compiled" in line]
    text = "\n".join(said)
    assert "refused on gfx942 does not compile: CompilationError" in text
    assert "Value argument cannot be block type" in text
    assert "spilling on sm_90 spills " in text
    assert "too much shared on sm_80 takes " in text
    assert any(line.startswith("well on sm_80: registers ") for line in recorded)
    assert "3 compiled" in summary
    assert "3 wrong" in summary
    assert len(program.table.read_text().splitlines()) == 1 + 3


def test_a_compiler_may_die(program: Program) -> None:
    """As LLVM does on a failed assertion: the others are compiled all the same."""
    more = """
compiled = aot.compiled
aot.compiled = lambda variant, target: os.abort() if target == "sm_80" else compiled(variant, target)
"""
    status, said = program("[odd.well(targets=('sm_80', 'sm_90'))]", more=more)
    assert status == 1
    assert "well on sm_80 does not compile: the compiler ended with status -6" in said
    assert len(program.table.read_text().splitlines()) == 1 + 1
