"""What one speaker waits for: the first word after a turn, the end after a cancel, a second turn, what a cut costs."""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Sequence

from harness import Running, checkpoint_of, text_of
from voice_client import Talk, middle, talking
from voice_figures import ENDLESS, PLAIN, Row, figures, row, words

from paceline.server.bench_report import percentile


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
    """From cancel to the terminal event, and how many steps end until no block is held."""
    ends, freed, steps = [], [], []
    async with talking(server.url) as talk:
        await talk.say(" ".join(words(60, "cancel")))
        for _ in range(arguments.rounds * 4):
            steps.append(await plain_step_ms(talk))
            await talk.settle(0.5)
            # Beside the conversation: behind a reply in it the next prompt is computed ahead, which holds blocks too.
            item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Count."}]}
            heard = await talk.ask(cancel_after=8, conversation="none", input=[item], **PLAIN, **ENDLESS)
            ends.append((heard.ended - heard.asked) * 1e3)
            first = found = figures(server)
            while found["paceline_cache_blocks", "held"]:
                await asyncio.sleep(0.002)  # asking all the time would take a core from the step that has to end
                found = figures(server)
            freed.append(found["paceline_steps_total", ""] - first["paceline_steps_total", ""])
    step, rounds = middle(steps), len(ends)
    return [
        row("cancel to terminal event p50, ms", middle(ends), step + 5, other_ms=step, rounds=rounds),
        row("cancel to terminal event p95, ms", percentile(ends, 95), step + 5, other_ms=step, rounds=rounds),
        row("steps that ended until all blocks were free, the most", max(freed), 1, rounds=rounds),
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


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two prompts have in common from their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
