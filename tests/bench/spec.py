"""Drafters on Spec-Bench, by category: `python spec.py --help`.

One stream. Every way of speculating has a server of its own, so that none finds the prompts of another in its cache;
all are up, one works at a time, and prompts go to each in turn, so that a change of the machine's pace meets all.
Ratios are to plain decoding of the same prompts in the same run; above 1 speculation is ahead.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import RESULTS, as_command, prompt_file, record, serving
from rich.progress import track

from paceline.engine.model.sources import DEFAULT_MODEL
from paceline.server.bench_client import Client, Reply
from paceline.server.bench_prompts import Prompt, load_prompts, spread
from paceline.server.bench_report import percentile
from paceline.server.terminal import notices

_PLAIN = "none"
_PAUSE_S = 0.05  # until the threads of the server that worked last have stopped spinning
# Spec-Bench counts the eight kinds of MT-bench as one of its six tasks.
_MT_BENCH = {"writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities"}

Replies = dict[tuple[str, float], list[Reply]]  # (mode, temperature) -> one per prompt


async def main(arguments: argparse.Namespace) -> int:
    prompts = spread([by_task(prompt) for prompt in load_prompts(prompt_file(arguments.prompts))], arguments.limit)
    modes = [_PLAIN, *(mode for mode in arguments.modes if mode != _PLAIN)]
    replies: Replies = {}
    async with AsyncExitStack() as stack:
        clients = {}
        for mode in modes:
            server = stack.enter_context(serving(arguments.model, *arguments.serve_option))
            clients[mode] = await stack.enter_async_context(Client(server.url))
        model = await clients[_PLAIN].first_model()
        for turn, prompt in enumerate(track(prompts, "prompts", console=notices(), transient=True)):
            start = turn % len(modes)
            for mode in (*modes[start:], *modes[:start]):
                for temperature in arguments.temperatures:
                    settings = {
                        "model": model,
                        "max_tokens": arguments.max_tokens,
                        "temperature": temperature,
                        "seed": turn,
                        "speculation": {"mode": mode, "max_nodes": arguments.max_nodes},
                    }
                    await asyncio.sleep(_PAUSE_S)
                    reply = await clients[mode].ask(prompt.messages, settings)
                    replies.setdefault((mode, temperature), []).append(reply)
    rows = [
        row
        for temperature in arguments.temperatures
        for mode in modes
        for row in figures(prompts, replies, mode, temperature, arguments)
    ]
    record("spec", rows)
    draw(rows, RESULTS / "spec.png")
    overall = [row for row in rows if row["category"] == "overall"]
    unequal, failed = (sum(row[name] for row in overall) for name in ("unequal", "errors"))
    if unequal:
        notices().print(f"{unequal} replies differ from plain decoding.", style="red")
    if failed:
        notices().print(f"{failed} requests failed and are in no figure.", style="red")
    return int(unequal + failed > 0)


def by_task(prompt: Prompt) -> Prompt:
    return replace(prompt, category="mt_bench") if prompt.category in _MT_BENCH else prompt


def figures(
    prompts: Sequence[Prompt], replies: Replies, mode: str, temperature: float, arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """A row for each category, and one for all prompts together."""
    own, plain = replies[mode, temperature], replies[_PLAIN, temperature]
    kinds = [prompt.category for prompt in prompts]
    rows = []
    for category in (*dict.fromkeys(kinds), "overall"):
        pairs = [
            (a, b)
            for a, b, kind in zip(own, plain, kinds, strict=True)
            if category in ("overall", kind) and a.error is None and b.error is None
        ]
        mine = [a for a, _ in pairs]
        rows.append(
            {
                "mode": mode,
                "temperature": temperature,
                "category": category,
                "prompts": len(pairs),
                "max_tokens": arguments.max_tokens,
                "max_nodes": arguments.max_nodes,
                "errors": sum(reply.error is not None for reply in own) if category == "overall" else 0,
                "unequal": sum(a.text != b.text or a.tokens != b.tokens for a, b in pairs),
                "tokens_per_step": tokens_per_step(mine),
                "accepted_of_drafted": accepted_share(mine),
                "tpot_gain": ratio([b for _, b in pairs], mine, decode_s),
                "ttft_ratio": middle([(a.ttft, b.ttft) for a, b in pairs]),
                "cached_ratio": round(
                    sum(a.cached_tokens for a in mine) / max(sum(b.cached_tokens for _, b in pairs), 1), 3
                ),
            }
        )
    return rows


def tokens_per_step(replies: Sequence[Reply]) -> float:
    """Tokens after the first over the steps that made them: steps without guesses count as one token each."""
    tokens = sum(max(reply.tokens - 1, 0) for reply in replies)
    accepted = sum(reply.figures.accepted for reply in replies if reply.figures)
    return round(tokens / max(tokens - accepted, 1), 3)


def accepted_share(replies: Sequence[Reply]) -> float:
    known = [reply.figures for reply in replies if reply.figures]
    return round(sum(each.accepted for each in known) / max(sum(each.drafted for each in known), 1), 3)


def decode_s(reply: Reply) -> float:
    return (reply.end or 0.0) - (reply.ttft or 0.0)


def ratio(plain: Sequence[Reply], own: Sequence[Reply], seconds: Any) -> float:
    """TPOT over all tokens together, without over with: both made the same tokens."""
    return round(sum(map(seconds, plain)) / max(sum(map(seconds, own)), 1e-9), 3)


def middle(pairs: Sequence[tuple[float | None, float | None]]) -> float | str:
    known = [a / b for a, b in pairs if a and b]
    return round(percentile(known, 50), 3) if known else ""


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Bars of the TPOT gain by category, a picture for each temperature."""
    try:
        import matplotlib
    except ImportError:
        notices().print("No picture was drawn: this Python has no matplotlib; install it for one.", markup=False)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    temperatures = list(dict.fromkeys(row["temperature"] for row in rows))
    categories = list(dict.fromkeys(row["category"] for row in rows))
    modes = [mode for mode in dict.fromkeys(row["mode"] for row in rows) if mode != _PLAIN]
    figure, axes = pyplot.subplots(len(temperatures), 1, figsize=(9, 3.2 * len(temperatures)), squeeze=False)
    for axis, temperature in zip(axes[:, 0], temperatures, strict=True):
        for place, mode in enumerate(modes):
            gains = [
                next(
                    row["tpot_gain"]
                    for row in rows
                    if (row["mode"], row["temperature"], row["category"]) == (mode, temperature, category)
                )
                for category in categories
            ]
            width = 0.8 / len(modes)
            bars = axis.bar([i + place * width for i in range(len(categories))], gains, width, label=mode)
            axis.bar_label(bars, fmt="%.2f", fontsize=7)
        axis.axhline(1.0, color="black", linewidth=0.8)
        axis.set_xticks([i + 0.4 - 0.4 / len(modes) for i in range(len(categories))], categories, fontsize=8)
        axis.set_ylabel("times plain decoding")
        axis.set_title(f"Time per output token, temperature {temperature:g}", fontsize=9)
        axis.legend(fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    add = parser.add_argument
    add("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    add("--prompts", help="Spec-Bench questions; default: $SPEC_BENCH")
    add("--modes", type=lambda text: text.split(","), default=["suffix", "recurrent", "auto"], help="a,b")
    add("--temperatures", type=lambda text: [float(part) for part in text.split(",")], default=[0.0, 0.8], help="a,b")
    add("--limit", type=int, default=48, help="prompts, spread over the tasks")
    add("--max-tokens", type=int, default=128)
    add("--max-nodes", type=int, default=8, help="rows of a tree, its root included")
    add("--serve-option", action="append", default=[], help="for `paceline serve`; repeat it")
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: asyncio.run(main(arguments())))
