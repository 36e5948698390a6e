"""What the benchmark programs share: a server in a process of its own, and the file each figure is recorded in."""

from __future__ import annotations

import argparse
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from paceline.engine.errors import PacelineError
from paceline.engine.model.checkpoint import Checkpoint, open_checkpoint
from paceline.engine.model.sources import default_cache, resolve
from paceline.server.bench_report import append_csv, percentile, provenance
from paceline.server.chat_template import ChatTemplate
from paceline.server.terminal import output, say_error
from paceline.server.tokenizer import Tokenizer

# Trial runs name another folder, so that the records hold only what was measured on a quiet machine.
RESULTS = Path(os.environ.get("BENCH_RESULTS", Path(__file__).resolve().parent / "results"))
PACELINE = Path(sys.executable).with_name("paceline")
PATIENCE_S = 300.0
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data" / "spec_bench_questions.jsonl"


def as_command(program: Callable[[], int | None]) -> NoReturn:
    """Run a benchmark as a command: what a user can put right is one sentence."""
    try:
        sys.exit(program())
    except PacelineError as error:
        say_error(str(error))
        sys.exit(1)


def some_of(parts: Collection[str]) -> Callable[[str], list[str]]:
    """Reads an option that names some of a benchmark's parts, with commas between; argparse tells which is none."""

    def read(text: str) -> list[str]:
        named = text.split(",")
        if unknown := [part for part in named if part not in parts]:
            raise argparse.ArgumentTypeError(f"there is no part {unknown[0]!r}; choose from {', '.join(parts)}")
        return named

    return read


def checkpoint_of(model: str) -> Checkpoint:
    """The model called `model`, from the cache, or fetched."""
    cache = default_cache()
    return open_checkpoint(resolve(model, cache), cache)


def text_of(checkpoint: Checkpoint) -> tuple[Tokenizer, ChatTemplate]:
    """What turns text and conversations into tokens for a model."""
    assets = checkpoint.text
    tokenizer = Tokenizer.from_assets(assets)
    return tokenizer, ChatTemplate(assets.chat_template or "", assets.bos_token, assets.eos_token, tokenizer)


Messages = tuple[Mapping[str, Any], ...]


def long_messages(template: ChatTemplate, words: Sequence[str], tokens: int, seed: int) -> Messages:
    """A user's message of random words that renders to `tokens` tokens, or a few more."""
    chosen = random.Random(f"{seed}/{tokens}").choices(words, k=tokens)

    def messages(count: int) -> Messages:
        return ({"role": "user", "content": " ".join(chosen[:count])},)

    low, high = 1, len(chosen)
    while low < high:
        middle = (low + high) // 2
        enough = len(template.encode(messages(middle))) >= tokens
        low, high = (low, middle) if enough else (middle + 1, high)
    return messages(low)


def prompt_file(named: str | None = None) -> Path:
    """The questions of Spec-Bench: `named`, $SPEC_BENCH, or a file next to the checkout. Exits where there is none."""
    path = Path(named or os.environ.get("SPEC_BENCH") or _BESIDE)
    if not path.is_file():
        sys.exit(
            f"There is no file {path}: download data/spec_bench/question.jsonl of hemingkx/Spec-Bench (Apache-2.0) "
            "from GitHub and name it with --prompts, or in the variable SPEC_BENCH."
        )
    return path


class LaunchError(Exception):
    """A server that did not come up; the text ends with its own words."""


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

    def cpu_s(self) -> float:
        """Processor time used so far, in seconds."""
        return cpu_seconds(self.pid)


def cpu_seconds(pid: int) -> float:
    """Processor time a process has used, all its threads together, as Linux counts it (in hundredths of a second)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    fields = stat.rpartition(")")[2].split()  # a name may hold spaces; what follows it starts with the state
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(*arguments: str) -> Iterator[Running]:
    """Run `paceline serve` on a free port until the block ends. Exits with the server's own words if it fails."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    try:
        with launched([PACELINE, "serve", "--port", str(port), *arguments], f"{url}/ready") as (process, ready_s):
            yield Running(url, process.pid, ready_s)
    except LaunchError as error:
        sys.exit(str(error))


@contextmanager
def launched(command: Sequence[str | Path], ready_url: str) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """Run a server until the block ends; yields its process and the seconds until `ready_url` answered 200.

    Raises LaunchError if it ends before, or does not become ready.
    """
    with tempfile.TemporaryFile() as log:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            while not _ready(ready_url):
                if process.poll() is not None or time.perf_counter() - started > PATIENCE_S:
                    log.seek(0)
                    words = log.read().decode(errors="replace").strip()
                    raise LaunchError(f"{Path(command[0]).name} did not become ready:\n{words}")
                time.sleep(0.01)
            yield process, time.perf_counter() - started
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def quantiles(name: str, values: Sequence[float]) -> dict[str, float]:
    """Columns `<name>_p20`, `_p50`, `_p80`."""
    return {f"{name}_p{q}": round(percentile(values, q), 4) for q in (20, 50, 80)}


def record(benchmark: str, rows: Sequence[Mapping[str, Any]], *, quiet: bool = False) -> None:
    """Print rows, unless quiet, and add them, with device, date and commit, to results/<benchmark>.csv."""
    console = output()
    for row in () if quiet else rows:
        console.print(f"{benchmark}: " + ", ".join(f"{key} {value}" for key, value in row.items()), markup=False)
    append_csv(RESULTS / f"{benchmark}.csv", [{**provenance(), **row} for row in rows])
