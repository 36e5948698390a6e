"""What it takes to start the server and to keep it: `python launch.py --help`.

From launch to /ready and to the first token of a reply, with the model and its packed weights in the cache; memory with
eight streams of 2,048 tokens, by format of cached keys and values; processor time while idle.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import time
from collections.abc import Mapping
from typing import Any

from harness import PACELINE, Running, as_command, checkpoint_of, long_messages, quantiles, record, serving, text_of

from paceline.engine.model.sources import DEFAULT_MODEL
from paceline.server.bench_client import Client, Reply

_HELLO = ({"role": "user", "content": "Hello!"},)
_SETTLE_S = 3.0  # until what the last request left to do is done
_REPLY = 64  # tokens of a stream that are its reply
_NEVER = -100.0  # the bias of a token that must not come


def main(arguments: argparse.Namespace) -> None:
    subprocess.run([PACELINE, "fetch"], check=True, stdout=subprocess.DEVNULL)
    record("launch", [starts(arguments.runs, arguments.model)])
    rows = [full(arguments, kv) for kv in ("f16", "int8")]
    record("memory", rows)


def starts(runs: int, model: str) -> dict[str, Any]:
    """Launches, one after the other; the first, which fills the caches, is not counted."""
    ready, first, resident, peak = [], [], [], []
    for run in range(runs + 1):
        with serving(model) as server:
            memory = server.memory_mb()
            # Sent over a connection that is made after /ready, as a first user's is; the client's own start is not
            # the server's and does not count.
            reply = asyncio.run(ask(server, _HELLO, {"max_tokens": 8}))
            if reply.ttft is None:
                raise SystemExit(f"The first request failed: {reply.error}.")
            if run:
                ready.append(server.ready_s)
                first.append(server.ready_s + reply.ttft)
                resident.append(memory.get("rss_mb", 0.0))
                peak.append(memory.get("peak_rss_mb", 0.0))
    figures = {**quantiles("ready_s", ready), **quantiles("first_token_s", first)}
    return {"runs": runs, **figures, "rss_mb": max(resident), "peak_rss_mb": max(peak)}


async def ask(server: Running, messages: tuple[Mapping[str, Any], ...], settings: Mapping[str, Any]) -> Reply:
    async with Client(server.url) as client:
        return await client.ask(messages, {"temperature": 0.0, **settings})


def full(arguments: argparse.Namespace, kv: str) -> dict[str, Any]:
    """Memory and idle processor time of a server that holds many long streams at once."""
    tokenizer, template = text_of(checkpoint_of(arguments.model))
    words = [str(number) for number in range(1000)]
    settings = {"max_tokens": _REPLY, "logit_bias": {str(token): _NEVER for token in tokenizer.eos_ids}}
    prompts = [
        long_messages(template, words, arguments.tokens - _REPLY, seed=stream) for stream in range(arguments.streams)
    ]

    async def together(server: Running) -> list[Reply]:
        return await asyncio.gather(*(ask(server, messages, settings) for messages in prompts))

    with serving(arguments.model, "--kv-format", kv) as server:
        asyncio.run(ask(server, _HELLO, {"max_tokens": 8}))
        fresh = server.memory_mb()
        idle_fresh = idle_share(server, arguments.idle)
        replies = asyncio.run(together(server))
        held = server.memory_mb()
        idle_used = idle_share(server, arguments.idle)
    if failed := [reply.error for reply in replies if reply.error is not None]:
        raise SystemExit(f"{len(failed)} of {len(replies)} streams failed: {failed[0]}.")
    return {
        "kv": kv,
        "streams": arguments.streams,
        "tokens_per_stream": min(reply.prompt_tokens + reply.tokens for reply in replies),
        "fresh_rss_mb": fresh.get("rss_mb", ""),
        "rss_mb": held.get("rss_mb", ""),
        "peak_rss_mb": held.get("peak_rss_mb", ""),
        "idle_s": arguments.idle,
        "idle_cpu_fresh": idle_fresh,
        "idle_cpu_after_use": idle_used,
    }


def idle_share(server: Running, seconds: float) -> float:
    """Processor time of an idle server, as a share of one core."""
    time.sleep(_SETTLE_S)
    before, start = server.cpu_s(), time.perf_counter()
    time.sleep(seconds)
    return round((server.cpu_s() - before) / (time.perf_counter() - start), 5)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--runs", type=int, default=5, help="launches")
    parser.add_argument("--streams", type=int, default=8, help="held at once")
    parser.add_argument("--tokens", type=int, default=2048, help="of each stream, prompt and reply")
    parser.add_argument("--idle", type=float, default=10.0, help="seconds of idling")
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
