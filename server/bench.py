"""`paceline bench`: how fast a server answers, measured from outside, against any OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from paceline.engine.errors import ConfigError

from .bench_client import Client, Reply
from .bench_prompts import Prompt, load_prompts, spread
from .bench_report import (
    Summary,
    append_csv,
    check_csv,
    check_writable,
    provenance,
    times_table,
    totals_table,
    write_json,
)

PLAIN = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What to measure. `speculation` "" sends no extension; `compare` sets it against "none"."""

    url: str
    prompts: Path
    concurrency: tuple[int, ...] = (1,)
    max_tokens: int = 128
    limit: int | None = None
    all_turns: bool = False
    model: str | None = None
    temperature: float = 0.0
    seed: int = 0
    speculation: str = ""
    compare: bool = False
    timeout_s: float = 600.0
    api_key: str | None = None
    device: str | None = None
    json: Path | None = None
    csv: Path | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Replies to the same prompts without and with speculation. Ratios above 1 are in favour of speculation."""

    pairs: tuple[tuple[Reply, Reply], ...]  # (plain, speculative), both without error
    plain: Summary
    fast: Summary

    @property
    def unequal(self) -> list[tuple[Reply, Reply]]:
        """The pairs whose texts or lengths differ."""
        return [(a, b) for a, b in self.pairs if a.text != b.text or a.tokens != b.tokens or a.finish != b.finish]

    def ratios(self) -> dict[str, float | None]:
        """tokens/s with over without; TPOT and TTFT (medians) without over with."""

        def ratio(a: float | None, b: float | None) -> float | None:
            return round(a / b, 4) if a and b else None

        return {
            "tokens_per_s": ratio(self.fast.tokens_per_s, self.plain.tokens_per_s),
            "tpot_p50": ratio(self.plain.tpot.get("p50"), self.fast.tpot.get("p50")),
            "ttft_p50": ratio(self.plain.ttft.get("p50"), self.fast.ttft.get("p50")),
        }


def run_bench(options: BenchOptions, out: Console, notices: Console) -> int:
    """Measure, print, record; returns the exit code: 1 when every request of a run failed.

    Raises BenchError for a server that cannot be measured and ConfigError for unreadable or unwritable files, and for
    a comparison of plain decoding with itself.
    """
    if options.compare and options.speculation == PLAIN:
        raise ConfigError(f"--compare sets speculation against {PLAIN}; leave --speculation out, or name a drafter.")
    prompts = spread(load_prompts(options.prompts), options.limit)
    if options.csv is not None:
        empty = Summary.of([], speculation="", concurrency=1, wall_s=0.0)
        check_csv(options.csv, list(_row(options, {}, empty, None)))
    if options.json is not None:
        check_writable(options.json)
    return asyncio.run(_run(options, prompts, out, notices))


async def _run(options: BenchOptions, prompts: Sequence[Prompt], out: Console, notices: Console) -> int:
    origin = provenance(options.device)
    summaries: list[Summary] = []
    replies: list[Reply] = []
    rows: list[dict[str, Any]] = []
    comparisons: list[Comparison] = []
    async with Client(options.url, api_key=options.api_key, timeout=options.timeout_s) as client:
        bench = _Bench(client, options, options.model or await client.first_model())
        warm = await bench.prime(prompts[0])
        if warm.error is not None:
            notices.print(f"The warm-up request failed: {warm.error}.", markup=False)
        for concurrency in options.concurrency:
            with _progress(notices, len(prompts), concurrency) as advance:
                if options.compare:
                    comparison, found = await bench.compare(prompts, concurrency, advance)
                    comparisons.append(comparison)
                    new = [comparison.plain, comparison.fast]
                    equal = f"{len(comparison.pairs) - len(comparison.unequal)}/{len(comparison.pairs)}"
                else:
                    summary, found = await bench.measure(prompts, concurrency, advance)
                    new, equal = [summary], None
            summaries += new
            replies += found
            rows += [_row(options, {**origin, "model": bench.model}, each, equal) for each in new]

    out.print(totals_table(summaries))
    out.print(times_table(summaries))
    for comparison in comparisons:
        _print_comparison(out, comparison)
    _print_notes(out, options, summaries, replies)
    if options.csv is not None:
        append_csv(options.csv, rows)
    if options.json is not None:
        write_json(options.json, {**origin, "runs": rows, "replies": [asdict(reply) for reply in replies]})
    return int(any(each.errors == each.requests for each in summaries))


class _Bench:
    """The measuring itself, without a word printed."""

    def __init__(self, client: Client, options: BenchOptions, model: str) -> None:
        self.model = model
        self._client = client
        self._options = options

    async def prime(self, prompt: Prompt) -> Reply:
        """Ask for one token, so that connections are open, code is warm and the prompt is cached as it will be."""
        return await self._client.ask(prompt.messages, self._settings(PLAIN if self._options.compare else "", 1))

    async def measure(
        self, prompts: Sequence[Prompt], concurrency: int, advance: Callable[[], None]
    ) -> tuple[Summary, list[Reply]]:
        """Keep `concurrency` conversations running until all prompts are asked."""
        mode = self._options.speculation
        waiting = iter(prompts)
        replies: list[Reply] = []

        async def worker() -> None:
            for prompt in waiting:
                replies.extend(await self._converse(prompt, mode, concurrency))
                advance()

        wall = await _timed(asyncio.gather(*(worker() for _ in range(concurrency))))
        return Summary.of(replies, speculation=mode, concurrency=concurrency, wall_s=wall), replies

    async def compare(
        self, prompts: Sequence[Prompt], concurrency: int, advance: Callable[[], None]
    ) -> tuple[Comparison, list[Reply]]:
        """Ask groups of `concurrency` prompts in both modes, one mode right after the other.

        Each group is primed first, so both modes find the same prefix cache; which mode comes first alternates, so
        that neither has the warmer machine.
        """
        modes = (PLAIN, self._options.speculation or "auto")
        conversations: dict[str, list[list[Reply]]] = {mode: [] for mode in modes}  # per mode, one list per prompt
        walls = dict.fromkeys(modes, 0.0)
        for number, start in enumerate(range(0, len(prompts), concurrency)):
            group = prompts[start : start + concurrency]
            await asyncio.gather(*(self.prime(prompt) for prompt in group))
            for mode in modes if number % 2 == 0 else reversed(modes):
                tasks = [asyncio.ensure_future(self._converse(prompt, mode, concurrency)) for prompt in group]
                walls[mode] += await _timed(asyncio.gather(*tasks))
                conversations[mode] += [task.result() for task in tasks]
            for _ in group:
                advance()
        replies = {mode: list(chain.from_iterable(conversations[mode])) for mode in modes}
        plain, fast = (
            Summary.of(replies[mode], speculation=mode, concurrency=concurrency, wall_s=walls[mode]) for mode in modes
        )
        turns = (zip(*both, strict=False) for both in zip(*conversations.values(), strict=True))
        pairs = tuple((a, b) for a, b in chain.from_iterable(turns) if a.error is None and b.error is None)
        return Comparison(pairs, plain, fast), [*replies[modes[0]], *replies[modes[1]]]

    async def _converse(self, prompt: Prompt, mode: str, concurrency: int) -> list[Reply]:
        """Ask the turns of one prompt in order; a failed turn ends the conversation."""
        messages = list(prompt.messages)
        replies: list[Reply] = []
        for turn, question in enumerate([None, *(prompt.follow_ups if self._options.all_turns else ())]):
            if question is not None:
                messages += [
                    {"role": "assistant", "content": replies[-1].text},
                    {"role": "user", "content": question},
                ]
            reply = await self._client.ask(messages, self._settings(mode, self._options.max_tokens))
            reply.prompt_id, reply.category, reply.turn = prompt.id, prompt.category, turn
            reply.speculation, reply.concurrency = mode, concurrency
            replies.append(reply)
            if reply.error is not None:
                break
        return replies

    def _settings(self, mode: str, max_tokens: int) -> Mapping[str, Any]:
        options = self._options
        settings: dict[str, Any] = {
            "model": self.model,
            "max_tokens": max_tokens,
            "temperature": options.temperature,
            "seed": options.seed,
        }
        if mode:
            settings["speculation"] = {"mode": mode}
        return settings


async def _timed(work: Awaitable[Any]) -> float:
    started = time.perf_counter()
    await work
    return time.perf_counter() - started


@contextmanager
def _progress(console: Console, total: int, concurrency: int) -> Iterator[Callable[[], None]]:
    """A bar that counts prompts; yields `advance()`."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        task = progress.add_task(f"{concurrency} at a time", total=total)
        yield lambda: progress.advance(task)


def _row(options: BenchOptions, origin: Mapping[str, str], summary: Summary, equal: str | None) -> dict[str, Any]:
    return {
        "date": origin.get("date", ""),
        "commit": origin.get("commit", ""),
        "device": origin.get("device", ""),
        "model": origin.get("model", ""),
        "prompts": options.prompts.name,
        "max_tokens": options.max_tokens,
        "temperature": options.temperature,
        "seed": options.seed,
        **summary.row(),
        "equal_texts": equal or "",
    }


def _print_comparison(out: Console, comparison: Comparison) -> None:
    names = {"tokens_per_s": "tokens/s", "tpot_p50": "TPOT", "ttft_p50": "TTFT"}
    parts = [f"{names[key]} {value:.2f}x" for key, value in comparison.ratios().items() if value is not None]
    plain, fast, pairs = comparison.plain, comparison.fast, comparison.pairs
    out.print(
        f"{fast.concurrency} at a time, {fast.speculation} against {plain.speculation}: "
        f"{', '.join(parts) or 'no figures'} (above 1 is faster); "
        f"{len(pairs) - len(comparison.unequal)} of {len(pairs)} texts equal."
    )
    for a, _ in comparison.unequal[:10]:
        out.print(f"  differs: prompt {a.prompt_id}, turn {a.turn + 1}", markup=False)


def _print_notes(out: Console, options: BenchOptions, summaries: Sequence[Summary], replies: Sequence[Reply]) -> None:
    if any(each.tokens_from != "usage" for each in summaries if each.output_tokens):
        out.print("The server sent no usage: tokens are counted as chunks, so TPOT and tokens/s are in chunks.")
    if any(each.cached_tokens for each in summaries):
        share = sum(each.cached_tokens for each in summaries) / max(1, sum(each.prompt_tokens for each in summaries))
        out.print(f"{share:.0%} of prompt tokens came from the server's cache: TTFT is that of warm prompts.")
    if (options.compare or options.speculation) and all(each.accepted_length is None for each in summaries):
        silent = all(reply.figures is None for reply in replies)
        out.print(
            "The server reported no speculation figures; it may not know the extension."
            if silent
            else "The server drafted nothing."
        )
    counts: dict[str, int] = {}
    for reply in replies:
        if reply.error is not None:
            counts[reply.error] = counts.get(reply.error, 0) + 1
    for sentence, count in sorted(counts.items(), key=lambda item: -item[1])[:5]:
        out.print(f"{count} failed: {sentence}", style="red", markup=False)
