"""The page in Chromium under a stream no model here can make: `python page.py --help`.

A scripted server stands in for the real one, so that the rate is what was asked for and the browser alone is measured,
but for the first paint, which is the real server's. Chromium and that server share this machine's cores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any

from browser import FLAGS, chromium_path
from harness import as_command, record, serving, some_of
from page_figures import PAINT, SHOWN, START, STOP, Row, row
from playwright.sync_api import Browser, Page, sync_playwright
from scripted_page import Event, Scripted, say, scripted_page
from traced_reply import traced_deltas
from websockets.sync.server import ServerConnection

from paceline.engine.errors import PacelineError
from paceline.engine.model.sources import DEFAULT_MODEL
from paceline.server.bench_report import percentile

_PATIENCE_MS = 300_000
_MEMORY_RATE = 2_000  # tokens a second
_FIFTHS = 5

# How so many tokens come: the name, in how many replies, whether each in a conversation of its own, and the bar in MB.
# 16,000 tokens are 0.1 MB of text, so 1 MB is room for what is in sight and for what the collector leaves. A
# conversation also keeps 32 replies more with the nodes they are drawn as, 64 kB each; how all of their tokens were
# guessed, which it must not keep, would be 8 MB.
WAYS = (
    ("one reply", 1, False, 1),
    ("ten conversations", 10, True, 1),
    ("one conversation, forty replies", 40, False, 2),
)


def main(options: argparse.Namespace) -> None:
    path = chromium_path()
    if path is None:
        raise PacelineError("Chromium is not installed; on Debian and Ubuntu: apt-get install chromium.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        for part in options.only:
            record("page", PARTS[part](browser, options))
        browser.close()


def paint_part(browser: Browser, options: argparse.Namespace) -> list[Row]:
    """First contentful paint of the real server's page, nothing cached, and what was transferred for it."""
    times = []
    with serving(options.model) as server:
        for _ in range(options.rounds):
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            page = context.new_page()
            page.goto(server.url)
            page.wait_for_function(PAINT)
            times.append(page.evaluate(PAINT))
            context.close()
    return [row("first contentful paint, ms, median", percentile(times, 50), 500, rounds=len(times))]


def smooth_part(browser: Browser, options: argparse.Namespace) -> list[Row]:
    """Frames and long tasks while a reply streams, with the speculation view open beside it."""
    tokens = int(options.seconds * options.rate)
    with scripted_page() as script:
        script.reply = replier(tokens, rate=options.rate)
        page = opened(browser, script)
        page.evaluate(START)
        ask(page)
        finish(page)
        seen: dict[str, Any] = page.evaluate(STOP)
    gaps: list[float] = seen["gaps"]
    return [
        row("frames a second", 1000 * len(gaps) / sum(gaps), 60),
        row("frame gap p99, ms", percentile(gaps, 99), ""),
        row("longest task, ms", max(seen["tasks"], default=0.0), 50, rounds=len(seen["tasks"])),
        row("tokens a second", tokens / seen["seconds"], ""),
    ]


def memory_part(browser: Browser, options: argparse.Namespace) -> list[Row]:
    """The heap after collecting, between a fifth of the tokens and all of them, in each way to come by so many."""
    rows = []
    first = options.tokens // _FIFTHS
    with scripted_page() as script:
        for name, replies, afresh, bar in WAYS:
            script.reply = replier(options.tokens // replies, rate=_MEMORY_RATE)
            page = opened(browser, script)
            heaps = []
            for number in range(1, replies + 1):
                ask(page)
                if replies < _FIFTHS:
                    page.wait_for_function(SHOWN, arg=first, timeout=_PATIENCE_MS)
                    heaps.append(heap_mb(page))
                finish(page)
                if number in (replies // _FIFTHS, replies):
                    heaps.append(heap_mb(page))
                if afresh:
                    page.click("#new")
            name = f"heap growth from {first:,} to {options.tokens:,} tokens, {name}, MB"
            rows.append(row(name, heaps[-1] - heaps[0], bar, rounds=replies))
            page.context.close()
    return rows


PARTS: Mapping[str, Callable[[Browser, argparse.Namespace], list[Row]]] = {
    "paint": paint_part,
    "smooth": smooth_part,
    "memory": memory_part,
}


def replier(tokens: int, *, rate: float) -> Callable[[ServerConnection, Event], None]:
    """Answers a response.create with so many tokens, `rate` a second."""

    def reply(connection: ServerConnection, _: Event) -> None:
        say(connection, "response.created", response={"id": "r"})
        start, sent = time.perf_counter(), 0
        for delta in traced_deltas(tokens):
            sent += delta["x_spec"]["emitted"]
            say(connection, "response.output_text.delta", response_id="r", item_id="i", **delta)
            time.sleep(max(0.0, start + sent / rate - time.perf_counter()))
        done = {"id": "r", "status": "completed", "usage": {"output_tokens": sent}}
        say(connection, "response.done", response=done)

    return reply


def opened(browser: Browser, script: Scripted) -> Page:
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(script.url)
    page.wait_for_selector("#chip[data-state=open]")
    return page


def ask(page: Page) -> None:
    page.fill("#message", "Go on and on.")
    page.press("#message", "Enter")


def finish(page: Page) -> None:
    page.wait_for_selector("#stop", state="hidden", timeout=_PATIENCE_MS)
    page.wait_for_selector("#send", state="visible", timeout=_PATIENCE_MS)


def heap_mb(page: Page) -> float:
    """Used by the page after everything that can be collected is."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used: int = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used / 1e6


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", default=DEFAULT_MODEL, help="a name the server knows, or a path")
    parser.add_argument("--only", type=some_of(PARTS), default=list(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rate", type=float, default=200, help="tokens a second while frames are watched")
    parser.add_argument("--seconds", type=float, default=60, help="for which frames are watched")
    parser.add_argument("--tokens", type=int, default=20_000, help="that come in all while the heap is watched")
    return parser.parse_args()


if __name__ == "__main__":
    as_command(lambda: main(arguments()))
