"""What many speakers do to each other and to the server: pace, the event loop, memory."""

from __future__ import annotations

import argparse
import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

from harness import Running, serving
from voice_client import Heard, lane, middle, talking
from voice_figures import ENDLESS, Row, lag_buckets, quantile, row, words
from voice_load import growth_mb

from paceline.server.bench_report import percentile


async def idle_part(server: Running, arguments: argparse.Namespace) -> list[Row]:
    """TPOT of sessions that speak: alone, and beside idle sessions whose conversations are pinned."""
    alone: list[Heard] = []
    beside: list[Heard] = []
    for round_ in range(arguments.rounds):
        alone += await speak(server, f"alone/{round_}", arguments)
        async with AsyncExitStack() as stack:
            for index in range(arguments.idle):
                talk = await stack.enter_async_context(talking(server.url))
                await talk.say(" ".join(words(60, f"idle/{round_}/{index}")))
            await asyncio.sleep(arguments.pause_s)
            beside += await speak(server, f"beside/{round_}", arguments)
    p95 = [percentile([heard.tpot_ms or 0.0 for heard in heards], 95) for heards in (alone, beside)]
    name = f"p95 TPOT of {arguments.speaking} beside {arguments.idle} idle sessions, over alone"
    return [row(name, p95[1] / p95[0], 1.10, ms=p95[1], other_ms=p95[0], rounds=arguments.rounds)]


async def speak(server: Running, seed: str, arguments: argparse.Namespace) -> list[Heard]:
    """So many sessions at once, each asking for a reply of 96 tokens."""

    async def one(index: int) -> Heard:
        async with talking(server.url) as talk:
            await talk.say(" ".join(words(40, f"{seed}/{index}")))
            await talk.settle(0.3)
            return await talk.ask(max_output_tokens=96, voice={"clauses": True}, temperature=0, **ENDLESS)

    return list(await asyncio.gather(*(one(index) for index in range(arguments.speaking))))


async def talk_part(server: Running, arguments: argparse.Namespace) -> list[Row]:
    """What eight sessions see at once: first token, first clause, gaps; and how late the server's event loop is."""
    await speak(server, "talk", arguments)  # what a server does once, on its first requests, is not looked at
    before = lag_buckets(server)
    heards: list[Heard] = []
    for round_ in range(arguments.rounds):
        heards += await speak(server, f"talk/{round_}", arguments)
    after = lag_buckets(server)
    lag = quantile({edge: after[edge] - before.get(edge, 0.0) for edge in after}, 0.99) * 1e3
    gaps = [gap for heard in heards for gap in heard.gaps_ms]
    return [
        row("event loop lag p99, ms", lag, 5, rounds=arguments.rounds),
        row("TTFT p50, ms", middle([heard.ttft_ms for heard in heards]), rounds=arguments.rounds),
        row("first clause p50, ms", middle([heard.clause_ms for heard in heards]), rounds=arguments.rounds),
        row("TPOT p50, ms", middle([heard.tpot_ms for heard in heards]), rounds=arguments.rounds),
        row("message gap p99, ms", percentile(gaps, 99), rounds=arguments.rounds),
    ]


async def responses_part(server: Running, arguments: argparse.Namespace) -> list[Row]:
    """What eight lanes of the Responses API see at once, and how soon a cancel ends one."""

    async def one(index: str, **request: Any) -> Heard:
        async with lane(server.url) as socket:
            text = " ".join(words(40, f"lane/{index}"))
            return await socket.ask(model="default", input=text, temperature=0, **ENDLESS, **request)

    heards: list[Heard] = []
    ends: list[float] = []
    for round_ in range(arguments.rounds):
        heards += await asyncio.gather(
            *(one(f"{round_}/{index}", max_output_tokens=96) for index in range(arguments.speaking))
        )
        cancelled = await one(f"{round_}/cancel", cancel_after=8)
        ends.append((cancelled.ended - cancelled.asked) * 1e3)
    gaps = [gap for heard in heards for gap in heard.gaps_ms]
    rounds = arguments.rounds
    return [
        row("responses: TTFT p50, ms", middle([heard.ttft_ms for heard in heards]), rounds=rounds),
        row("responses: TPOT p50, ms", middle([heard.tpot_ms for heard in heards]), rounds=rounds),
        row("responses: message gap p99, ms", percentile(gaps, 99), rounds=rounds),
        row("responses: cancel to terminal event p50, ms", middle(ends), rounds=rounds),
    ]


async def classes_part(server: Running, arguments: argparse.Namespace) -> list[Row]:
    """TPOT of two interactive sessions: alone, and beside background replies and long background prompts."""

    async def speaker(seed: str) -> Heard:
        async with talking(server.url) as talk:
            await talk.say(" ".join(words(40, seed)))
            await talk.settle(0.3)
            return await talk.ask(max_output_tokens=128, temperature=0, **ENDLESS)

    async def crowd(seed: str) -> None:
        while True:
            async with lane(server.url) as socket:
                text = " ".join(words(600, f"{seed}/{time.perf_counter()}"))
                request = {"model": "default", "input": text, "max_output_tokens": 64, "priority": "background"}
                await socket.ask(temperature=0, **request, **ENDLESS)

    alone: list[Heard] = []
    beside: list[Heard] = []
    for round_ in range(arguments.rounds):
        alone += await asyncio.gather(*(speaker(f"class/{round_}/{index}") for index in "ab"))
        others = [asyncio.create_task(crowd(f"crowd/{round_}/{index}")) for index in range(6)]
        await asyncio.sleep(1)
        beside += await asyncio.gather(*(speaker(f"class/{round_}/{index}") for index in "cd"))
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
    p95 = [percentile([heard.tpot_ms or 0.0 for heard in heards], 95) for heards in (alone, beside)]
    name = "p95 TPOT of 2 interactive beside 6 background clients, over alone"
    return [row(name, p95[1] / p95[0], ms=p95[1], other_ms=p95[0], rounds=arguments.rounds)]


async def memory_part(_: Running, arguments: argparse.Namespace) -> list[Row]:
    """How a server's memory grows under load, with many sockets open of which some never read.

    Its cache is a small one, in use as a whole before memory is looked at: pages that a cache touches for the first
    time are no growth.
    """
    with serving(arguments.model, "--kv-memory", "96MB") as server:
        growth = await growth_mb(server, arguments.sockets, arguments.deaf, arguments.minutes * 60, arguments.speaking)
    name = f"memory growth, {arguments.sockets} sockets, {arguments.deaf} deaf, {arguments.minutes:g} minutes, MB"
    return [row(name, growth, 20)]
