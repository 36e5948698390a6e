"""What the device check tells: figures as they come, the record of a device, and the verdict."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator

from device_tools import NONE, RESULTS, SOME, Check, Figure, Machine, append, check_row, figure_row, provenance, table


class _Warnings(logging.Handler):
    """Prints warnings, and adds to `told` those of a backend that runs more slowly than it should."""

    def __init__(self, told: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._told = told

    def emit(self, record: logging.LogRecord) -> None:
        print(record.getMessage(), flush=True)
        if record.name.partition(".")[0] in ("paceline", "device_tools"):
            self._told.append(record.getMessage())


class Report:
    """Prints figures as they come, and keeps them: those of a device also in the record, part by part."""

    def __init__(self, machine: Machine, commit: str) -> None:
        self._interpreted = machine.interpreted
        self._made = {} if machine.interpreted else provenance(commit)
        self.figures: list[tuple[str, Figure]] = []
        self.failed: list[str] = []
        self.broken: list[str] = []  # what there are no figures of, and what they are not worth
        logging.getLogger().addHandler(_Warnings(self.broken))

    def figure(self, part: str, figure: Figure) -> None:
        self.figures.append((part, figure))
        bar = f"   {figure.bar} {figure.held}" if figure.bar else ""
        print(f"{part}: {figure.name}: {figure.value:.5g} {figure.unit}{bar}", flush=True)
        if self._made:
            append(RESULTS / "device_check.csv", [figure_row(part, figure, self._made)])

    def check(self, check: Check) -> None:
        if not check.ok:
            self.failed.append(f"{check.op} {check.variant} {check.note}")
        error = check.note or f"{check.error:.3g} <= {check.bound:g}"
        print(f"{'ok ' if check.ok else 'BAD'} {check.op}: {check.variant}: {error}", flush=True)
        if self._made:
            append(RESULTS / "device_kernels.csv", [check_row(check, self._made)])

    def guarded(self, part: str, section: Iterator[Figure]) -> Iterator[Figure]:
        """The figures of a section until it breaks: it takes no other one's figures with it."""
        try:
            yield from section
        except Exception as error:
            traceback.print_exc()
            self.broken.append(f"{part}: broke off, {type(error).__name__}: {error}")

    def conclude(self) -> int:
        """The verdict: every figure that has a bar, and what there is none of."""
        judged = [(part, figure) for part, figure in self.figures if figure.bar is not None]
        lines = [(part, f.name, f"{f.value:.4g} {f.unit}", str(f.bar), f.held) for part, f in judged]
        print("\n" + table([("part", "figure", "value", "bar", "held"), *lines]))
        broken = [*self.failed, *dict.fromkeys(self.broken)]
        for line in broken:
            print(line)
        missed = [figure for _, figure in judged if figure.held == "NO"]
        if self._interpreted:
            print("Interpreted on the CPU at tiny sizes: no figure says anything about a device, and none is recorded.")
            missed = [figure for figure in missed if figure.bar in (NONE, SOME)]  # the others are of time
        return 1 if broken or missed else 0
