"""Figures from measured replies: percentiles, tables, and records with device, date and commit."""

from __future__ import annotations

import csv
import datetime
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from rich.table import Column, Table

from paceline.engine.errors import ConfigError

from .bench_client import Reply

QUANTILES = (20, 50, 80, 95)


def percentile(values: Sequence[float], q: float) -> float:
    """The q-th percentile (0 … 100) of a non-empty sequence, linear between the two nearest ranks."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * q / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def quantiles_ms(values: Iterable[float | None]) -> dict[str, float]:
    """p20 … p95 in milliseconds of values in seconds; empty where there is none."""
    known = [value * 1000 for value in values if value is not None]
    return {f"p{q}": round(percentile(known, q), 3) for q in QUANTILES} if known else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All replies of one run: one way of speculating at one concurrency. Times are quantiles in milliseconds."""

    speculation: str
    concurrency: int
    requests: int
    errors: int
    wall_s: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    tokens_from: str  # "usage", "chunks", or "mixed"
    ttft: Mapping[str, float]
    tpot: Mapping[str, float]
    itl: Mapping[str, float]
    accepted_length: float | None  # tokens per speculating step, the bonus token included
    draft_acceptance: float | None  # accepted part of all drafted tokens

    @property
    def tokens_per_s(self) -> float:
        """Output tokens of all streams together per second of wall time."""
        return self.output_tokens / self.wall_s if self.wall_s > 0 else 0.0

    @classmethod
    def of(cls, replies: Sequence[Reply], *, speculation: str, concurrency: int, wall_s: float) -> Summary:
        """Sum up `replies`; failed ones count as errors and in no other figure."""
        good = [reply for reply in replies if reply.error is None]
        figures = [reply.figures for reply in good if reply.figures is not None]
        steps = sum(each.steps for each in figures)
        drafted = sum(each.drafted for each in figures)
        accepted = sum(each.accepted for each in figures)
        sources = {reply.tokens_from for reply in good}
        return cls(
            speculation=speculation,
            concurrency=concurrency,
            requests=len(replies),
            errors=len(replies) - len(good),
            wall_s=round(wall_s, 3),
            prompt_tokens=sum(reply.prompt_tokens for reply in good),
            cached_tokens=sum(reply.cached_tokens for reply in good),
            output_tokens=sum(reply.tokens for reply in good),
            tokens_from="mixed" if len(sources) > 1 else next(iter(sources), "usage"),
            ttft=quantiles_ms(reply.ttft for reply in good),
            tpot=quantiles_ms(reply.tpot for reply in good),
            itl=quantiles_ms(gap for reply in good for gap in reply.gaps),
            accepted_length=round(1 + accepted / steps, 4) if steps else None,
            draft_acceptance=round(accepted / drafted, 4) if drafted else None,
        )

    def row(self) -> dict[str, Any]:
        """The figures as flat columns for a CSV file."""
        times = {
            f"{name}_ms_p{q}": getattr(self, name).get(f"p{q}", "")
            for name in ("ttft", "tpot", "itl")
            for q in QUANTILES
        }
        return {
            "speculation": self.speculation,
            "concurrency": self.concurrency,
            "requests": self.requests,
            "errors": self.errors,
            "wall_s": self.wall_s,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "tokens_from": self.tokens_from,
            "tokens_per_s": round(self.tokens_per_s, 2),
            **times,
            "accepted_length": self.accepted_length if self.accepted_length is not None else "",
            "draft_acceptance": self.draft_acceptance if self.draft_acceptance is not None else "",
        }


def totals_table(summaries: Sequence[Summary]) -> Table:
    """One line per run: how much, how fast, how well guessed."""
    table = Table("speculation", *(Column(name, justify="right") for name in ("streams", "replies", "errors")))
    for heading in ("tokens", "tokens/s", "accepted length"):
        table.add_column(heading, justify="right")
    for each in summaries:
        table.add_row(
            _mode(each),
            str(each.concurrency),
            str(each.requests - each.errors),
            f"[red]{each.errors}[/red]" if each.errors else "0",
            str(each.output_tokens),
            f"{each.tokens_per_s:.1f}",
            "-" if each.accepted_length is None else f"{each.accepted_length:.2f}",
        )
    return table


def times_table(summaries: Sequence[Summary]) -> Table:
    """Three lines per run: quantiles of TTFT, TPOT and ITL in milliseconds."""
    table = Table("speculation", Column("streams", justify="right"), "ms")
    for q in QUANTILES:
        table.add_column(f"p{q}", justify="right")
    for each in summaries:
        for name, times in (("TTFT", each.ttft), ("TPOT", each.tpot), ("ITL", each.itl)):
            figures = [f"{value:.1f}" for value in times.values()] or ["-"] * len(QUANTILES)
            first = (_mode(each), str(each.concurrency)) if name == "TTFT" else ("", "")
            table.add_row(*first, name, *figures, end_section=name == "ITL")
    return table


def _mode(summary: Summary) -> str:
    return summary.speculation or "(not asked)"


def provenance(device: str | None = None) -> dict[str, str]:
    """Where and when a figure was made: date (UTC), commit of the checkout around the current folder, device."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": _commit(),
        "device": device or _processor(),
    }


def append_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows to a CSV file, with a header when it is new.

    Raises ConfigError when the file cannot be written, or has other columns: figures of two layouts in one file would
    be misread.
    """
    if not rows:
        return
    columns = list(rows[0])
    check_csv(path, columns)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if file.tell() == 0:
            writer.writeheader()
        writer.writerows(rows)


def check_csv(path: Path, columns: Sequence[str]) -> None:
    """Raise ConfigError when `path` cannot be written, or holds a table with other columns."""
    check_writable(path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header = next(csv.reader(file), None)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read as a table ({error}); name another file.") from error
    if header is not None and header != list(columns):
        raise ConfigError(f"{path} holds a table with other columns; name another file, or move this one away.")


def check_writable(path: Path) -> None:
    """Raise ConfigError when no file can be written at `path`; call it before a long run. A new file is left empty."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}); name another file.") from error


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write one JSON file, indented. Raises ConfigError when it cannot be written."""
    check_writable(path)
    path.write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def _commit() -> str:
    """Short hash of HEAD, "+" behind it when tracked files differ; "" outside a checkout or without git."""
    try:
        head = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
        changes = subprocess.run(
            ["git", "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.stdout.strip() + ("+" if changes.stdout.strip() else "")


def _processor() -> str:
    cores = f"{os.cpu_count()} cores"
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor() or platform.machine()}, {cores}"
