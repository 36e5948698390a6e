"""The native kernels against the machine's memory: `python kernels.py --help`.

Every figure is a share of what two plain readers get out of the same memory in the same run. GB are 10^9 bytes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import as_command, checkpoint_of, quantiles, record
from native_figures import NativePass, read_bandwidth
from rich.table import Column, Table

from paceline.engine.config import EngineConfig
from paceline.engine.model.sources import DEFAULT_MODEL, default_cache
from paceline.kernels.native.isa import load
from paceline.kernels.native.ops import physical_cores
from paceline.kernels.sample import Draw
from paceline.server.bench_report import percentile
from paceline.server.terminal import output

ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 512)
CONTEXTS = (64, 256, 512, 1024, 2048, 4096)
_FEW_CONTEXT = 128  # cached tokens before the rows whose linear layers are measured
_TREE_ROWS = 64  # a tree samples all its rows, a larger chunk is a prompt and samples its last
_GREEDY = Draw(seed=0, position=0, temperature=0.0, top_k=0, top_p=1.0, min_p=0.0)


def main(arguments: argparse.Namespace) -> None:
    threads = arguments.threads or physical_cores()
    readers = read_bandwidth(threads)
    bandwidth = max(readers.values())
    figures = [figure("bandwidth", name, bytes_=value / 1e3, times=[1.0]) for name, value in readers.items()]
    for kv in ("f16", "int8"):
        config = EngineConfig(threads=threads, weights=arguments.weights, kv_format=kv)
        slots = max(_FEW_CONTEXT + max(arguments.rows), max(arguments.contexts) + max(arguments.tree_rows))
        native = NativePass.build(checkpoint_of(arguments.model), config, slots=slots, cache=default_cache())
        native.fill(slots)
        if kv == "f16":
            figures += by_rows(native, arguments.rows, arguments.passes)
        figures += by_context(native, arguments.contexts, arguments.tree_rows, arguments.passes, kv)
    for each in figures:
        each["of_bandwidth"] = share(each["gb_per_s"], bandwidth / 1e9)
    show(figures)
    facts = {"model": Path(arguments.model).name, "isa": load().__name__.rpartition("_")[2], "threads": threads}
    record("kernels", [{**facts, "weights": arguments.weights, **each} for each in figures], quiet=True)


def by_rows(native: NativePass, counts: Sequence[int], passes: int) -> list[dict[str, Any]]:
    """Each kind of op, the pass, and the step (pass and sampling, as Python sees them), by number of rows.

    Row counts take turns within a round, so that a change of the machine's pace meets all of them.
    """
    batches = {rows: native.batch(rows, _FEW_CONTEXT, sampled=rows if rows <= _TREE_ROWS else 1) for rows in counts}
    times: dict[int, dict[str, list[float]]] = {rows: {} for rows in counts}
    for turn in range(passes + 1):
        for rows, batch in batches.items():
            if rows > _TREE_ROWS and turn > max(3, passes // 8):
                continue  # long passes are steady
            found = {**native.op_ms(batch), "pass": native.whole_ms(batch), "step": _step_ms(native, batch)}
            if turn:  # the first warms up
                for name, value in found.items():
                    times[rows].setdefault(name, []).append(value)
    one = {name: percentile(values, 50) for name, values in times[min(counts)].items()}
    return [
        figure(
            "rows",
            name,
            rows=rows,
            context=_FEW_CONTEXT,
            times=values,
            bytes_=_read(native, name, rows),
            of_one_row=round(percentile(values, 50) / one[name], 3) if min(counts) == 1 else "",
        )
        for rows in counts
        for name, values in times[rows].items()
        if name not in ("embed", "select")
    ]


def _step_ms(native: NativePass, batch: Any) -> float:
    start = time.perf_counter()
    logits, _ = native.forward(batch)
    native.sample(logits, [_GREEDY] * len(logits))
    return (time.perf_counter() - start) * 1e3


def _read(native: NativePass, name: str, rows: int) -> float:
    if name in ("pass", "step"):
        return sum(native.weight_bytes.values())
    if name in ("attention", "rope_store"):
        return native.slot_bytes * (rows + (_FEW_CONTEXT if name == "attention" else 0))
    return native.weight_bytes[name]


def by_context(
    native: NativePass, contexts: Sequence[int], rows: Sequence[int], passes: int, kv: str
) -> list[dict[str, Any]]:
    """Attention of a chain of rows after contexts of different lengths: how fast it reads keys and values."""
    cases = [(context, count) for context in contexts for count in rows]
    times: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
    for turn in range(passes // 2 + 2):
        for context, count in cases:
            spent = native.op_ms(native.batch(count, context, sampled=count))["attention"]
            if turn:
                times[context, count].append(spent)
    return [
        figure(
            f"context {kv}",
            "attention",
            rows=count,
            context=context,
            times=values,
            bytes_=native.slot_bytes * (context + count),
        )
        for (context, count), values in times.items()
    ]


def figure(
    part: str,
    name: str,
    *,
    times: Sequence[float],
    bytes_: float,
    rows: int | str = "",
    context: int | str = "",
    of_one_row: float | str = "",
) -> dict[str, Any]:
    """One line of the record. times: milliseconds; bytes_: weights, or keys and values, read in that time."""
    middle = percentile(times, 50)
    return {
        "part": part,
        "op": name,
        "rows": rows,
        "context": context,
        **(quantiles("ms", times) if rows else {"ms_p20": "", "ms_p50": "", "ms_p80": ""}),
        "rows_per_s": round(rows * 1e3 / middle, 1) if isinstance(rows, int) else "",
        "gb_per_s": round(bytes_ / middle / 1e6, 3),
        "of_bandwidth": "",
        "of_one_row": of_one_row,
    }


def share(part: float, whole: float) -> float:
    return round(part / whole, 4)


def show(figures: Sequence[Mapping[str, Any]]) -> None:
    """One table per part."""
    columns = ("rows", "context", "ms_p50", "rows_per_s", "gb_per_s", "of_bandwidth", "of_one_row")
    headings = ("rows", "context", "ms", "rows/s", "GB/s", "of read", "of 1 row")
    console = output()
    for part in dict.fromkeys(each["part"] for each in figures):
        table = Table("op", *(Column(heading, justify="right") for heading in headings), title=part)
        for each in figures:
            if each["part"] == part:
                table.add_row(each["op"], *(brief(each[name]) for name in columns))
        console.print(table)


def brief(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--threads", type=int, help="default: one per core")
    parser.add_argument("--weights", default="stored", help="format weights are kept in")
    parser.add_argument("--passes", type=int, default=40, help="rounds of measuring")
    parser.add_argument("--rows", type=numbers, default=ROWS, help="like 1,4,8")
    parser.add_argument("--contexts", type=numbers, default=CONTEXTS, help="like 64,4096")
    parser.add_argument("--tree-rows", type=numbers, default=(1, 8), help="rows at each context")
    return parser.parse_args()


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
