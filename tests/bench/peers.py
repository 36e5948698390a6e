"""Paceline against other engines on the same weights and prompts, in one run: `python peers.py --help`.

One stream, greedy, the same number of threads each. All contenders are up, only one works at a time: every prompt goes
to each of them in turn, and who comes first changes from prompt to prompt, so a change of the machine's pace meets all.
Ratios are medians over prompts; above 1 they are in our favour.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from contenders import PLAIN, Case, Contender, MissingError, given, has_module, library, llama_cpp, paceline, weights_of
from harness import as_command, checkpoint_of, long_messages, prompt_file, quantiles, record, text_of
from rich.progress import track
from rich.table import Table

from paceline.engine.model.sources import DEFAULT_MODEL, default_cache, resolve
from paceline.server.bench_client import BenchError, Reply
from paceline.server.bench_prompts import load_prompts, spread
from paceline.server.bench_report import percentile, write_json
from paceline.server.chat_template import ChatTemplate
from paceline.server.terminal import notices, output
from paceline.server.tokenizer import Tokenizer

_PAUSE_S = 0.05  # until the threads of whoever worked last have stopped spinning
_LOOKUP = "lookup"  # the libraries' own prompt lookup decoding
_US = "paceline"


class Replies:
    """What one contender answered, case by case."""

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self.texts: list[Reply] = []
        self.prefills: list[Reply] = []
        self.cpu_s = 0.0  # while it was asked

    @property
    def key(self) -> tuple[str, str, str]:
        return self.contender.peer, self.contender.weights, self.contender.mode

    async def ask(self, case: Case, max_tokens: int) -> Reply:
        await asyncio.sleep(_PAUSE_S)
        before = self.contender.cpu_s()
        reply = await self.contender.ask(case, max_tokens)
        self.cpu_s += self.contender.cpu_s() - before
        return reply


async def main(arguments: argparse.Namespace) -> int:
    model = resolve(arguments.model, default_cache())
    tokenizer, template = text_of(checkpoint_of(arguments.model))
    prompts = spread(load_prompts(prompt_file(arguments.prompts)), arguments.limit)
    cases = [Case(prompt.messages, tuple(template.encode(prompt.messages))) for prompt in prompts]
    words = sorted({word for prompt in prompts for message in prompt.messages for word in message["content"].split()})
    long = [long_case(template, words, arguments.prefill, seed) for seed in range(arguments.prefills)]
    async with AsyncExitStack() as stack:
        found = await everyone(stack, arguments, model, tokenizer)
        warm = long_case(template, words, 64, seed=-1)
        for each in found:
            failed = (await each.ask(warm, 8)).error
            if failed is not None:
                notices().print(f"{' '.join(each.key)} fails: {failed}.", markup=False)
        idle = [each.contender.cpu_s() - each.cpu_s for each in found]
        started = time.perf_counter()
        for turn, case in enumerate(track(cases, "prompts", console=notices(), transient=True)):
            for each in turned(found, turn):
                each.texts.append(await each.ask(case, arguments.max_tokens))
        for turn, case in enumerate(track(long, "prefill", console=notices(), transient=True)):
            for each in turned([each for each in found if each.contender.mode == PLAIN], turn):
                each.prefills.append(await each.ask(case, 2))
        wall = time.perf_counter() - started
        beside = [each.contender.cpu_s() - each.cpu_s - before for each, before in zip(found, idle, strict=True)]
    rows = [summary(each, found, cases, arguments) for each in found]
    for row, seconds in zip(rows, beside, strict=True):
        row["cpu_beside_others"] = round(seconds / wall, 4)
    show(rows)
    if arguments.json is not None:
        answers = {" ".join(each.key): [asdict(reply) for reply in each.texts + each.prefills] for each in found}
        write_json(arguments.json, {"rows": rows, "replies": answers})
    record("peers", rows, quiet=True)
    return int(any(reply.error for each in found for reply in each.texts))


async def everyone(
    stack: AsyncExitStack, arguments: argparse.Namespace, model: Path, tokenizer: Tokenizer
) -> list[Replies]:
    """All contenders that can be had here, ready; one line for each that cannot."""
    threads, wanted = arguments.threads, arguments.peers
    weights = {file: weights_of(file) for file in (model, *arguments.also)}
    asked: list[tuple[str, AbstractAsyncContextManager[Contender]]] = [
        ("paceline", paceline(arguments.model, weights[model], threads, mode, arguments.serve_option))
        for mode in (PLAIN, "auto")
    ]
    if "llama.cpp" in wanted:
        for file, kind in weights.items():
            for mode in (PLAIN, *([arguments.llama_spec] if file == model and arguments.llama_spec else [])):
                asked.append((f"llama.cpp {kind} {mode}", llama_cpp(arguments.llama_server, file, kind, threads, mode)))
    for kind, modules, python in (
        ("openvino", ("openvino_genai",), arguments.openvino_python),
        ("transformers", ("transformers", "accelerate", "gguf"), arguments.transformers_python),
    ):
        missing = [module for module in modules if kind in wanted and not has_module(python, module)]
        if missing:
            option = f"--{kind}-python"
            notices().print(
                f"{kind} is left out: {python} has no module {missing[0]}; name a Python that has it with {option}.",
                markup=False,
            )
        elif kind in wanted:
            asked += [
                (f"{kind} {mode}", library(kind, python, model, weights[model], threads, mode, tokenizer))
                for mode in (PLAIN, _LOOKUP)
            ]
    asked += [(name, given(name, url)) for name, url in arguments.server]
    found = []
    for name, manager in asked:
        try:
            found.append(Replies(await stack.enter_async_context(manager)))
        except (MissingError, BenchError) as error:
            notices().print(f"{name} is left out: {str(error).rstrip('.')}.", markup=False)
    return found


def turned(contenders: Sequence[Replies], turn: int) -> list[Replies]:
    """The same contenders, each turn starting with the next one."""
    start = turn % len(contenders)
    return [*contenders[start:], *contenders[:start]]


def long_case(template: ChatTemplate, words: Sequence[str], tokens: int, seed: int) -> Case:
    """A prompt whose text no cache knows."""
    messages = long_messages(template, words, tokens, seed)
    return Case(messages, tuple(template.encode(messages)))


def summary(
    own: Replies, everyone: Sequence[Replies], cases: Sequence[Case], arguments: argparse.Namespace
) -> dict[str, Any]:
    """One contender's figures, and its ratios to us without speculation."""
    ours = next(each for each in everyone if each.key[0] == _US and each.key[2] == PLAIN)
    plain = next(
        (each for each in everyone if each.key == (*own.key[:2], PLAIN)),
        own,
    )
    good = [reply for reply in own.texts if reply.error is None]
    pairs = [(a, b) for a, b in zip(own.texts, plain.texts, strict=True) if a.error is None and b.error is None]
    equal = sum(a.text == b.text for a, b in pairs)
    known = sum(reply.prompt_tokens == len(case.ids) for reply, case in zip(own.texts, cases, strict=True))
    return {
        "peer": own.contender.peer,
        "version": own.contender.version,
        "weights": own.contender.weights,
        "mode": own.contender.mode,
        "threads": arguments.threads,
        "prompts": len(cases),
        "max_tokens": arguments.max_tokens,
        "errors": len(own.texts) - len(good),
        "same_prompts": f"{known}/{len(cases)}",
        "prompt_tokens": sum(reply.prompt_tokens for reply in good),
        "output_tokens": sum(reply.tokens for reply in good),
        **milliseconds("tpot", [reply.tpot for reply in good]),
        **milliseconds("ttft", [reply.ttft for reply in good]),
        **columns("prefill_tokens_per_s", [prefill_rate(reply) for reply in own.prefills]),
        "tpot_over_ours": middle_ratio([(a.tpot, b.tpot) for a, b in zip(own.texts, ours.texts, strict=True)]),
        "our_prefill_over_theirs": middle_ratio(
            [(prefill_rate(b), prefill_rate(a)) for a, b in zip(own.prefills, ours.prefills, strict=False)]
        ),
        "plain_tpot_over_own": middle_ratio([(b.tpot, a.tpot) for a, b in pairs]) if own is not plain else "",
        "texts_as_plain": f"{equal}/{len(pairs)}" if own is not plain else "",
    }


def prefill_rate(reply: Reply) -> float | None:
    """Prompt tokens computed per second until the first token came."""
    first = reply.ttft or reply.end
    return None if reply.error is not None or not first else (reply.prompt_tokens - reply.cached_tokens) / first


def middle_ratio(pairs: Sequence[tuple[float | None, float | None]]) -> float | str:
    """The median of first over second, over the pairs that have both; empty where there is none."""
    ratios = [a / b for a, b in pairs if a and b]
    return round(percentile(ratios, 50), 3) if ratios else ""


def milliseconds(name: str, seconds: Sequence[float | None]) -> dict[str, float | str]:
    return columns(f"{name}_ms", [None if value is None else value * 1e3 for value in seconds])


def columns(name: str, values: Sequence[float | None]) -> dict[str, float | str]:
    known = [value for value in values if value is not None]
    return {**quantiles(name, known)} if known else {f"{name}_p{q}": "" for q in (20, 50, 80)}


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    names = {
        "mode": "mode",
        "tpot_ms_p50": "TPOT ms",
        "tpot_over_ours": "over ours",
        "ttft_ms_p50": "TTFT ms",
        "prefill_tokens_per_s_p50": "prefill/s",
        "our_prefill_over_theirs": "ours over",
        "plain_tpot_over_own": "gain",
        "texts_as_plain": "same text",
    }
    table = Table("peer", "weights", *names.values())
    for row in rows:
        cells = (f"{row[key]:.4g}" if isinstance(row[key], float) else str(row[key]) for key in names)
        table.add_row(row["peer"], row["weights"], *cells)
    output().print(table)
    for row in rows:
        if row["errors"]:
            notices().print(f"{row['peer']} {row['mode']}: {row['errors']} replies failed.", style="red", markup=False)
        if row["same_prompts"] != f"{row['prompts']}/{row['prompts']}":
            notices().print(
                f"{row['peer']} saw other tokens: {row['same_prompts']} prompts as long as ours.", markup=False
            )
        if row["cpu_beside_others"] > 0.02:
            share = row["cpu_beside_others"]
            notices().print(f"{row['peer']} {row['mode']} used {share:.0%} of a core beside the others.", markup=False)


def server(text: str) -> tuple[str, str]:
    name, equals, url = text.partition("=")
    if not (name and equals and url):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=URL")
    return name, url


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    binary = os.environ.get("LLAMA_SERVER")
    add = parser.add_argument
    add("--peers", type=lambda text: text.split(","), default=["llama.cpp", "openvino", "transformers"], help="a,b")
    add("--model", default=DEFAULT_MODEL, help="a name the server knows, or a .gguf file")
    add("--also", type=Path, action="append", default=[], help="the model in another format, for llama.cpp; repeat it")
    add("--prompts", help="Spec-Bench questions; default: $SPEC_BENCH")
    add("--limit", type=int, default=24, help="prompts, spread over the categories")
    add("--max-tokens", type=int, default=128)
    add("--prefill", type=int, default=512, help="tokens of a long prompt")
    add("--prefills", type=int, default=8, help="long prompts")
    add("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each contender")
    add("--llama-server", type=Path, default=binary and Path(binary), help="default: $LLAMA_SERVER")
    add("--llama-spec", default="ngram-cache", help="llama-server's --spec-type to compare texts with; '' for none")
    add("--openvino-python", default=os.environ.get("OPENVINO_PYTHON", sys.executable), help="a Python that has it")
    add("--transformers-python", default=os.environ.get("TRANSFORMERS_PYTHON", sys.executable), help="likewise")
    add("--server", type=server, action="append", default=[], help="NAME=URL of any server; repeat it")
    add(
        "--serve-option",
        action="append",
        default=[],
        help="for `paceline serve`, like --weights=q4; repeat it",
    )
    add("--json", type=Path, help="all replies")
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: asyncio.run(main(arguments())))
