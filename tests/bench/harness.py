"""What the benchmark programs share: a server in a process of its own, and the file each figure is recorded in."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.server.bench_report import append_csv, percentile, provenance
from paceline.server.terminal import output

RESULTS = Path(__file__).resolve().parent / "results"
PACELINE = Path(sys.executable).with_name("paceline")
PATIENCE_S = 300.0


@dataclass(frozen=True)
class Running:
    """A server that is ready. `ready_s` is the time from its launch to the first 200 of /ready, in seconds."""

    url: str
    pid: int
    ready_s: float

    def memory_mb(self) -> dict[str, float]:
        """Resident memory now and at its peak, in MB (10^6 bytes), as Linux counts it; empty elsewhere."""
        try:
            lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        except OSError:
            return {}
        kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if "kB" in rest}
        return {"rss_mb": round(kib["VmRSS"] * 1.024e-3, 1), "peak_rss_mb": round(kib["VmHWM"] * 1.024e-3, 1)}


@contextmanager
def serving(*arguments: str) -> Iterator[Running]:
    """Run `paceline serve` on a free port until the block ends. Exits with the server's own words if it fails."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile("w+") as log:
        started = time.perf_counter()
        process = subprocess.Popen([PACELINE, "serve", "--port", str(port), *arguments], stdout=log, stderr=log)
        try:
            while not _ready(url):
                if process.poll() is not None or time.perf_counter() - started > PATIENCE_S:
                    log.seek(0)
                    sys.exit(f"The server did not become ready:\n{log.read()}")
                time.sleep(0.01)
            yield Running(url, process.pid, time.perf_counter() - started)
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/ready", timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def quantiles(name: str, values: Sequence[float]) -> dict[str, float]:
    """Columns `<name>_p20`, `_p50`, `_p80`."""
    return {f"{name}_p{q}": round(percentile(values, q), 4) for q in (20, 50, 80)}


def record(benchmark: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows and add them, with device, date and commit, to results/<benchmark>.csv."""
    console = output()
    for row in rows:
        console.print(f"{benchmark}: " + ", ".join(f"{key} {value}" for key, value in row.items()), markup=False)
    append_csv(RESULTS / f"{benchmark}.csv", [{**provenance(), **row} for row in rows])
