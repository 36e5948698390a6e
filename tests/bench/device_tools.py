"""What the parts of the device check share: the machine and its clock, figures with their bars, and the record."""

from __future__ import annotations

import csv
import datetime
import gc
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

# Trial runs name another folder, so that the records hold only what was measured on a quiet machine.
RESULTS = Path(os.environ.get("BENCH_RESULTS", Path(__file__).resolve().parent / "results"))
_log = logging.getLogger(__name__)
_COPIED = 1 << 30  # bytes, far beyond any last-level cache
_GIT_S = 20


@dataclass(frozen=True, slots=True)
class Bar:
    """What a figure has to reach, or, not `least`, must not exceed."""

    limit: float
    least: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.limit if self.least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.least else '<='} {self.limit:g}"


# Of what is counted.
NONE = Bar(0)
SOME = Bar(1, least=True)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the record."""

    name: str
    value: float
    unit: str
    bar: Bar | None = None

    @property
    def held(self) -> str:
        if self.bar is None:
            return ""
        return "yes" if self.bar.holds(self.value) else "NO"


@dataclass(frozen=True, slots=True)
class Check:
    """A kernel against what it has to compute: the largest error, as a share of 1 + |value|; or rows that differ.

    note: why there is no error to tell, of a case that broke.
    """

    op: str
    variant: str
    error: float
    bound: float
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.error <= self.bound  # False for NaN


class Machine:
    """The device, and what things take on it.

    interpreted: kernels run one program after the other on the CPU, which shows that the check works and nothing else.
    """

    def __init__(self, *, interpreted: bool, minutes: float) -> None:
        self.interpreted = interpreted
        self.device = torch.device("cpu" if interpreted else "cuda")
        self._until = time.monotonic() + minutes * 60
        self._flushed: torch.Tensor | None = None
        self._copy_rate: float | None = None

    @property
    def left_s(self) -> float:
        """Seconds this run may still take."""
        return self._until - time.monotonic()

    def wait(self) -> None:
        if not self.interpreted:
            torch.cuda.synchronize()

    def release(self) -> None:
        """Give back what nobody holds any more: decoders hold themselves, by the passes made of them."""
        gc.collect()
        if not self.interpreted:
            torch.cuda.empty_cache()

    @property
    def is_usable(self) -> bool:
        return self.interpreted or is_usable()

    def captured(self, work: Callable[[], object]) -> Callable[[], object]:
        """The same work as a CUDA graph, so that the host's time is no part of it. The first runs compile.

        Where it cannot be captured, a warning, and the work itself.
        """
        if self.interpreted:
            return work
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                work()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                work()
        except RuntimeError as error:
            _log.warning("Timed without a CUDA graph, the host's time included: %s", error)
            return work
        return graph.replay

    def ms(self, work: Callable[[], object], *, repeats: int = 25, per: int = 1, cold: bool = False) -> float:
        """Median milliseconds that the device takes for `work`, a part in `per` of it.

        cold: between repetitions more is written than any cache holds.
        """
        if self.interpreted:
            return statistics.median(_walls_ms(work, 1)) / per
        work()
        marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
        for start, stop in marks:
            if cold:
                self._flush()
            start.record()
            work()
            stop.record()
        torch.cuda.synchronize()
        return statistics.median(start.elapsed_time(stop) for start, stop in marks) / per

    def stream_ms(self, step: Callable[[], object], *, steps: int = 12, repeats: int = 5) -> float:
        """Median milliseconds per step of a device that always has its next step queued."""

        def several() -> None:
            for _ in range(1 if self.interpreted else steps):
                step()

        return self.ms(several, repeats=repeats, per=1 if self.interpreted else steps)

    def _flush(self) -> None:
        if self._flushed is None:
            size = 4 * torch.cuda.get_device_properties(self.device).L2_cache_size
            self._flushed = torch.empty(size, dtype=torch.uint8, device=self.device)
        self._flushed.zero_()

    @property
    def copy_rate(self) -> float:
        """Bytes read and written per second by a large copy on the device, measured once."""
        if self._copy_rate is None:
            size = 1 << 20 if self.interpreted else _COPIED
            source, target = (torch.ones(size, dtype=torch.uint8, device=self.device) for _ in range(2))
            self._copy_rate = 2 * size / self.ms(lambda: target.copy_(source)) * 1e3
        return self._copy_rate


def is_usable() -> bool:
    """Whether this process can still use the device: after some errors CUDA refuses whatever follows."""
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def _walls_ms(work: Callable[[], object], repeats: int) -> list[float]:
    walls = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        walls.append((time.perf_counter() - start) * 1e3)
    return walls


def nbytes(packed: Any) -> int:
    """Bytes of all tensors in a packed weight."""
    if isinstance(packed, torch.Tensor):
        return packed.nbytes
    fields = getattr(packed, "__dataclass_fields__", {})
    return sum(nbytes(getattr(packed, name)) for name in fields)


def provenance(commit: str) -> dict[str, str]:
    """Where and when figures were made. commit: what to say where git knows none."""
    import triton  # late: the kernels are told first how to run; and builds of it go by several names

    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "driver": _said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").partition("\n")[0],
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": _commit() or commit,
    }


def _commit() -> str:
    """Short hash of HEAD, "+" behind it when tracked files differ. The server's own needs packages this may lack."""
    head = _said("git", "rev-parse", "--short", "HEAD")
    return head + ("+" if head and _said("git", "status", "--porcelain", "--untracked-files=no") else "")


def _said(*command: str) -> str:
    """What a program prints; "" where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_GIT_S)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to a CSV file, with a header when it is new. Exits where the file holds another table."""
    if not rows:
        return
    columns = list(rows[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", newline="", encoding="utf-8") as file:
        file.seek(0)
        header = next(csv.reader(file), None)
        if header not in (None, columns):
            sys.exit(f"{path} holds a table with other columns; move it away, or name a folder in BENCH_RESULTS.")
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if header is None:
            writer.writeheader()
        writer.writerows(rows)


def figure_row(part: str, figure: Figure, made: Mapping[str, str]) -> dict[str, Any]:
    return {
        "part": part,
        "figure": figure.name,
        "value": float(f"{figure.value:.5g}"),
        "unit": figure.unit,
        "bar": "" if figure.bar is None else str(figure.bar),
        "held": figure.held.lower(),
        **made,
    }


def check_row(check: Check, made: Mapping[str, str]) -> dict[str, Any]:
    return {
        "op": check.op,
        "variant": check.variant or check.note,
        "max_error": float(f"{check.error:.3g}"),
        "bound": check.bound,
        "ok": "yes" if check.ok else "no",
        **made,
    }


def table(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows of text in columns, the first as a heading."""
    lines = list(rows)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([texts[0], "-" * len(texts[0]), *texts[1:]])
