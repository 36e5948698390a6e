"""Every kernel, compiled for GPUs without a GPU: `python compile_table.py --help`.

Records registers, spills, shared memory and tensor-core instructions; ends with 1 when a variant does not compile,
spills or fits no program's shared memory, or when --check finds that a figure is not the recorded one.
"""

from __future__ import annotations

import argparse
import csv
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from aot import VERSION, Failure, Figures, compile_each
from harness import RESULTS, as_command

from paceline.engine.errors import ConfigError
from paceline.kernels.gpu.variant import TARGETS
from paceline.kernels.gpu.variants import all_variants
from paceline.server.bench_report import check_csv
from paceline.server.terminal import output

TABLE = RESULTS / "compile.csv"
_COLUMNS = [field.name for field in fields(Figures)]
_WORDS = ("variant", "target", "triton")


def main(arguments: argparse.Namespace) -> int:
    chosen = [variant for variant in all_variants() if arguments.only in variant.name]
    if not chosen:
        raise ConfigError(f"No variant's name contains {arguments.only!r}; run without --only to compile them all.")
    recorded = read(TABLE)
    kept = [row for row in recorded if not covered(row, arguments)] if is_partial(arguments) else []
    if not arguments.check:
        refuse_mixture(kept)
    say = output()
    done: list[Figures] = []
    failed: list[Failure] = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("TRITON_CACHE_DIR", cache)
        for result in compile_each(chosen, arguments.target, arguments.jobs):
            if isinstance(result, Failure):
                failed.append(result)
                continue
            done.append(result)
            if not arguments.check:
                say.print(line(result), markup=False)
    wrong = [fault for result in (*done, *failed) for fault in result.faults()]
    if arguments.check:
        lost = {(each.variant, each.target) for each in failed}
        compared = [row for row in recorded if covered(row, arguments) and (row.variant, row.target) not in lost]
        wrong += differences(done, compared)
        if other := sorted({row.triton for row in compared} - {VERSION}):
            say.print(f"Recorded with Triton {', '.join(other)}: only limits and use of tensor cores are compared.")
    else:
        write(TABLE, [*kept, *done])
    for each in wrong:
        say.print(each, markup=False)
    say.print(f"{len(done)} compiled with Triton {VERSION}, {len(wrong) or 'nothing'} wrong.")
    return 1 if wrong else 0


def is_partial(arguments: argparse.Namespace) -> bool:
    return bool(arguments.only) or set(arguments.target) != set(TARGETS)


def covered(row: Figures, arguments: argparse.Namespace) -> bool:
    return arguments.only in row.variant and row.target in arguments.target


def refuse_mixture(kept: Iterable[Figures]) -> None:
    """Raises ConfigError when part of the table would come from another Triton than the rest."""
    if other := {row.triton for row in kept} - {VERSION}:
        raise ConfigError(
            f"{TABLE} was recorded with Triton {', '.join(sorted(other))}, and this is {VERSION}: record it as a "
            "whole, without --only and --target, or name another folder in BENCH_RESULTS."
        )


def line(row: Figures) -> str:
    figures = asdict(row).items()
    return f"{row.variant} on {row.target}: " + ", ".join(
        f"{key} {value}" for key, value in figures if key not in _WORDS
    )


def differences(found: Sequence[Figures], recorded: Sequence[Figures]) -> list[str]:
    """What is not as recorded, a sentence each. Another Triton may take more or less, but use tensor cores alike."""
    before = {(row.variant, row.target): row for row in recorded}
    now = {(row.variant, row.target): row for row in found}
    said = [f"{name} on {target} is not recorded." for name, target in now.keys() - before.keys()]
    said += [f"{name} on {target} is recorded, but was not compiled." for name, target in before.keys() - now.keys()]
    for key in now.keys() & before.keys():
        old, new = asdict(before[key]), asdict(now[key])
        if old["triton"] != new["triton"]:
            old, new = ({"uses tensor cores": row["tensor_core"] > 0} for row in (old, new))
        changes = [f"{name} {old[name]} -> {new[name]}" for name in old if old[name] != new[name]]
        if changes:
            said.append(f"{key[0]} on {key[1]} has changed: {', '.join(changes)}.")
    return sorted(said)


def read(path: Path) -> list[Figures]:
    """The recorded table, empty where there is none. Raises ConfigError when it is another table."""
    if not path.is_file():
        return []
    check_csv(path, _COLUMNS)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [Figures(**{name: row[name] if name in _WORDS else int(row[name]) for name in _COLUMNS}) for row in rows]


def write(path: Path, rows: Iterable[Figures]) -> None:
    """The table anew, in an order of its own: what changed shows as changed lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, _COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(asdict(row) for row in sorted(rows, key=lambda row: (row.variant, TARGETS.index(row.target))))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="variants whose names contain it, like linear/")
    parser.add_argument("--target", choices=TARGETS, action="append", help="may be repeated; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at once")
    parser.add_argument("--check", action="store_true", help="compare with the record instead of writing it")
    given = parser.parse_args()
    given.target = given.target or list(TARGETS)
    return given


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
