"""What a voice assistant waits for, over realtime sockets: `python voice.py --help`.

Each part measures one thing against another in the same run, turn by turn; a step is one token of a plain reply to
the same conversation. The server is a process of its own, and so are its figures of memory and of the event loop.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
import urllib.request
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from harness import Running, as_command, checkpoint_of, record, serving, text_of
from prometheus_client.parser import text_string_to_metric_families
from voice_client import Heard, Talk, middle, talking
from voice_load import growth_mb

from paceline.engine.model.sources import DEFAULT_MODEL
from paceline.server.bench_report import percentile

PLAIN = {"speculation": {"mode": "none"}, "temperature": 0}
ENDLESS = {"logit_bias": {"2": -100}}  # the default model's end token never comes
_TEXT = (
    "time year people way day man thing woman life child world school state family student group country problem hand "
    "part place case week company system program question work government number night point home water room mother "
    "area money story fact month lot right study book eye job word business issue side kind head house service friend "
    "father power hour game line end member law car city community name president team minute idea body information "
    "back parent face others level office door health person art war history party result change morning reason"
)

Row = dict[str, Any]
Part = Callable[[Running, argparse.Namespace], Awaitable[list[Row]]]


def words(count: int, seed: object) -> list[str]:
    """Words nobody has said before: nothing of them is in a cache."""
    return random.Random(str(seed)).choices(_TEXT.split(), k=count)


def row(
    figure: str, value: float, bar: float | str = "", *, ms: float = 0.0, other_ms: float = 0.0, rounds: int = 1
) -> Row:
    """ms, other_ms: the two times a ratio is of, or the one and the step it is held against; 0 where there is none."""
    return {
        "figure": figure,
        "value": round(value, 4),
        "bar": bar if isinstance(bar, str) else round(bar, 3),
        "ms": round(ms, 2),
        "other_ms": round(other_ms, 2),
        "rounds": rounds,
    }


async def plain_step_ms(talk: Talk) -> float:
    """Milliseconds a token of a plain reply takes behind what was said so far."""
    heard = await talk.ask(max_output_tokens=33, **PLAIN, **ENDLESS)
    return heard.tpot_ms or 0.0


async def commit_part(server: Running, arguments: argparse.Namespace) -> list[Row]:
    """From commit to first delta: the turn was appended while it was spoken, or is sent all at once."""
    appended, at_once, steps = [], [], []
    for round_ in range(arguments.rounds):
        turn = words(380, f"commit/{round_}")
        async with talking(server.url) as talk:
            for start in range(0, len(turn), 5):
                await talk.send("input_text.append", text=" ".join(turn[start : start + 5]) + " ")
                await asyncio.sleep(arguments.spoken_ms / 1e3)
            await asyncio.sleep(0.2)  # what an assistant waits for after the last word, at least
            committed = await talk.send("input_text.commit")
            appended.append(await talk.ask(committed, max_output_tokens=24, **PLAIN))
            steps.append(await plain_step_ms(talk))
        async with talking(server.url) as talk:
            text = " ".join(words(380, f"at once/{round_}"))
            committed = await talk.send(
                "conversation.item.create",
                item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]},
            )
            at_once.append(await talk.ask(committed, max_output_tokens=24, **PLAIN))
    waited, cold = middle([heard.ttft_ms for heard in appended]), middle([heard.ttft_ms for heard in at_once])
    in_steps = [heard.ttft_ms / step for heard, step in zip(appended, steps, strict=True)]
    rounds = arguments.rounds
    return [
        row(
            "commit to first delta, over sending all at once",
            waited / cold,
            0.15,
            ms=waited,
            other_ms=cold,
            rounds=rounds,
        ),
        row(
            "commit to first delta, in plain steps",
            middle(in_steps),
            6,
            ms=waited,
            other_ms=middle(steps),
            rounds=rounds,
        ),
        row("tokens recomputed after commit", middle([heard.recomputed for heard in appended]), rounds=rounds),
    ]


async def cancel_part(server: Running, arguments: argparse.Namespace) -> list[Row]:
    """From cancel to the terminal event, and until the engine has no sequence and no block held."""
    ends, freed, steps = [], [], []
    async with talking(server.url) as talk:
        await talk.say(" ".join(words(60, "cancel")))
        for _ in range(arguments.rounds * 4):
            steps.append(await plain_step_ms(talk))
            heard = await talk.ask(cancel_after=8, **PLAIN, **ENDLESS)
            while figures(server)["paceline_cache_blocks", "held"]:
                pass
            freed.append((time.perf_counter() - heard.asked) * 1e3)
            ends.append((heard.ended - heard.asked) * 1e3)
    step, rounds = middle(steps), len(ends)
    return [
        row("cancel to terminal event p50, ms", middle(ends), step + 5, other_ms=step, rounds=rounds),
        row("cancel to terminal event p95, ms", percentile(ends, 95), step + 5, other_ms=step, rounds=rounds),
        row(
            "cancel to blocks seen free p50, a request for figures included, ms",
            middle(freed),
            other_ms=step,
            rounds=rounds,
        ),
    ]


async def turn_part(server: Running, arguments: argparse.Namespace) -> list[Row]:
    """The second turn of a conversation of 2,000 tokens against a conversation that nobody has seen."""
    cold, second = [], []
    for round_ in range(arguments.rounds):
        async with talking(server.url) as talk:
            for part in range(4):
                await talk.send(
                    "conversation.item.create",
                    item={
                        "type": "message",
                        "role": "user" if part % 2 == 0 else "assistant",
                        "content": [{"type": "text", "text": " ".join(words(470, f"turn/{round_}/{part}"))}],
                    },
                )
            started = await talk.send(
                "conversation.item.create",
                item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And then?"}]},
            )
            cold.append(await talk.ask(started, max_output_tokens=32, **PLAIN))
            await asyncio.sleep(arguments.pause_s)
            started = await talk.send(
                "conversation.item.create",
                item={"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say more."}]},
            )
            second.append(await talk.ask(started, max_output_tokens=32, **PLAIN))
    ratio = statistics.median(b.ttft_ms / a.ttft_ms for a, b in zip(cold, second, strict=True))
    waited, other = middle([heard.ttft_ms for heard in second]), middle([heard.ttft_ms for heard in cold])
    name = f"second turn over a cold one of {cold[0].usage['input_tokens']} tokens"
    return [row(name, ratio, 0.05, ms=waited, other_ms=other, rounds=arguments.rounds)]


async def cut_part(server: Running, arguments: argparse.Namespace) -> list[Row]:
    """Cut the last answer to what was heard and go on: tokens that are computed again, the new ones left out."""
    _, template = text_of(checkpoint_of(arguments.model))
    again = []
    for round_ in range(arguments.rounds):
        async with talking(server.url) as talk:
            told, asked = " ".join(words(300, f"cut/{round_}")), "Stop there, and tell me why."
            await talk.say(told)
            heard = await talk.ask(max_output_tokens=96, **PLAIN, **ENDLESS)
            kept = heard.text[: len(heard.text) // 2]
            item = heard.done["output"][0]["id"]
            await talk.send("conversation.item.truncate", item_id=item, content_index=0, x_text_end=len(kept))
            await talk.until("conversation.item.truncated")
            await talk.say(asked)
            after = await talk.ask(max_output_tokens=8, **PLAIN)
        head = [{"role": "user", "content": told}, {"role": "assistant", "content": heard.text}]
        cut = [head[0], {"role": "assistant", "content": kept}, {"role": "user", "content": asked}]
        prompt = template.encode(cut)
        new = len(prompt) - common(template.encode(head), prompt)
        again.append(after.recomputed - new)
    return [row("recomputed after a cut besides the new text, tokens", max(again), 16, rounds=arguments.rounds)]


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


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two prompts have in common from their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


async def memory_part(_: Running, arguments: argparse.Namespace) -> list[Row]:
    """How a server's memory grows under load, with many sockets open of which some never read.

    Its cache is a small one, in use as a whole before memory is looked at: pages that a cache touches for the first
    time are no growth.
    """
    with serving(arguments.model, "--kv-memory", "96MB") as server:
        growth = await growth_mb(server, arguments.sockets, arguments.deaf, arguments.minutes * 60, arguments.speaking)
    name = f"memory growth, {arguments.sockets} sockets, {arguments.deaf} deaf, {arguments.minutes:g} minutes, MB"
    return [row(name, growth, 20)]


def figures(server: Running) -> dict[tuple[str, str], float]:
    """The server's own metrics by name and first label's value."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def lag_buckets(server: Running) -> dict[float, float]:
    """Seconds -> how often the event loop was at most that late."""
    name = "paceline_event_loop_lag_seconds_bucket"
    return {float(edge): count for (key, edge), count in figures(server).items() if key == name}


def quantile(cumulative: Mapping[float, float], q: float) -> float:
    """The q-quantile (0 … 1) of a histogram, linear inside a bucket; the last finite edge for what lies past it."""
    edges = sorted(cumulative)
    total = cumulative[edges[-1]]
    low, below = 0.0, 0.0
    for edge in edges:
        if cumulative[edge] >= q * total:
            if edge == float("inf"):
                return low
            inside = cumulative[edge] - below
            return low + (edge - low) * ((q * total - below) / inside if inside else 0.0)
        low, below = edge, cumulative[edge]
    return low


PARTS: Mapping[str, Part] = {
    "commit": commit_part,
    "cancel": cancel_part,
    "turn": turn_part,
    "cut": cut_part,
    "talk": talk_part,
    "idle": idle_part,
    "memory": memory_part,
}


def main(arguments: argparse.Namespace) -> None:
    with serving(arguments.model) as server:
        for part in arguments.only:
            record("voice", asyncio.run(PARTS[part](server, arguments)))


def arguments() -> argparse.Namespace:
    def parts(text: str) -> list[str]:
        named = text.split(",")
        if unknown := set(named) - PARTS.keys():
            raise argparse.ArgumentTypeError(f"no part {sorted(unknown)[0]!r}; there are {', '.join(PARTS)}")
        return named

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--only", type=parts, default=list(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spoken-ms", type=float, default=100, help="between two pieces of five words")
    parser.add_argument("--pause-s", type=float, default=1.0, help="between an answer and the next question")
    parser.add_argument("--speaking", type=int, default=8, help="sessions that speak at once")
    parser.add_argument("--idle", type=int, default=200, help="sessions that only hold a conversation")
    parser.add_argument("--sockets", type=int, default=1000, help="open while memory is watched")
    parser.add_argument("--deaf", type=int, default=50, help="of these, the ones that ask and never read")
    parser.add_argument("--minutes", type=float, default=5, help="of load while memory is watched")
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
