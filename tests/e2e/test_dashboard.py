"""The dashboard in Chromium, against the real server and the default model."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from axe import needs_axe, violations
from browser import LATE_S, Tab, frames
from playwright.sync_api import Browser, Page, expect
from prometheus_client.parser import text_string_to_metric_families
from serve_command import serving

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

KEY = "a-key"
HEADERS = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
LATE_MS = 1000 * LATE_S  # for a scrape to be drawn


@contextmanager
def locked(model: Path) -> Iterator[str]:
    """A running `paceline serve` that asks for a key."""
    with serving(model, "--max-batch", "2", "--context-length", "2048", PACELINE_API_KEY=KEY) as (_, url):
        yield f"{url}/"


# Both need the browser first, so that they are skipped together with it.
@pytest.fixture(scope="module")
def server(chromium: Browser, default_model: Path) -> Iterator[str]:
    """One for all tests that do not mind what others asked of it."""
    with locked(default_model) as url:
        yield url


@pytest.fixture
def unasked(chromium: Browser, default_model: Path) -> Iterator[str]:
    """One that has answered nothing yet."""
    with locked(default_model) as url:
        yield url


@pytest.fixture
def board(tab: Tab, server: str) -> Page:
    return opened(tab, server)


def opened(tab: Tab, server: str) -> Page:
    tab.page.add_init_script(f"sessionStorage.setItem('paceline.key', JSON.stringify({{key: '{KEY}'}}))")
    page = tab.open(f"{server}#/dashboard")
    expect(page.locator("[data-figure=generated]")).to_have_count(1, timeout=LATE_MS)
    return page


def ask(server: str, text: str, *, tokens: int) -> None:
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": tokens, "temperature": 0}
    with urlopen(Request(f"{server}v1/chat/completions", json.dumps(body).encode(), HEADERS)) as answer:
        answer.read()


def told(server: str) -> dict[str, float]:
    """What /metrics says, summed over all labels but `le`, by name and `le`."""
    with urlopen(Request(f"{server}metrics", headers=HEADERS)) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    sums: dict[str, float] = {}
    for sample in (sample for family in families for sample in family.samples):
        name = f"{sample.name}{sample.labels.get('le', '')}".removeprefix("paceline_")
        sums[name] = sums.get(name, 0.0) + sample.value
    return sums


def settled(server: str) -> dict[str, float]:
    """What /metrics says once it stays so for half a second: an answer leaves before its last step is counted."""
    last: dict[str, float] = {}
    alike = 0
    deadline = time.monotonic() + LATE_S
    while alike < 10:
        assert time.monotonic() < deadline, f"the server still counts, long after its last answer: {last}"
        time.sleep(0.05)
        now = counted(told(server))
        alike = alike + 1 if now == last else 0
        last = now
    return told(server)


def counted(figures: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if name.startswith(("step_", "generated", "drafted"))}


def rows(page: Page) -> list[int]:
    """How many figures stand in each row."""
    places = page.locator("[data-figure]").evaluate_all("all => all.map(one => one.offsetTop)")
    return [places.count(place) for place in dict.fromkeys(places)]


def shows(page: Page, figure: str, text: str) -> None:
    expect(page.locator(f"[data-figure={figure}] strong")).to_have_text(text, timeout=LATE_MS)


def counts(page: Page, row: str, number: float) -> None:
    """The first cell of a row."""
    expect(page.locator(f"{row} td").first).to_have_text(f"{number:.0f}", timeout=LATE_MS)


def test_the_figures_agree_with_metrics_after_a_reply(tab: Tab, unasked: str) -> None:
    board = opened(tab, unasked)
    expect(board.locator(".dashboard-empty")).to_contain_text("ask something in the chat")
    for text in ("Count from one to twenty.", "Say this twice: the cat sat on the mat, and the mat sat still."):
        ask(unasked, text, tokens=32)
    figures = settled(unasked)
    shows(board, "generated", f"{figures['generated_tokens_total']:.0f}")
    expect(board.locator(".dashboard-empty")).to_have_count(0)
    shows(board, "running", "0")
    shows(
        board,
        "prefix-hits",
        f"{figures['prefix_hit_tokens_total'] / figures['prompt_tokens_total']:.0%}".replace("%", " %"),
    )
    shows(
        board,
        "acceptance",
        f"{figures['accepted_tokens_total'] / figures['drafted_tokens_total']:.0%}".replace("%", " %"),
    )
    counts(board, "[data-drafter=all]", figures["drafted_tokens_total"])
    assert board.locator("[data-drafter]").count() > 1
    for spread, name in (
        ("ttft", "time_to_first_token_seconds"),
        ("sequences", "step_sequences"),
        ("rows", "step_rows"),
    ):
        counts(board, f"[data-spread={spread}] [data-stretch=always]", figures[f"{name}_count"])
        counts(board, f"[data-spread={spread}] [data-stretch=recent]", figures[f"{name}_count"])
    counts(board, "[data-counts=replies] tbody tr", 2)
    blocks = [
        int(row.split()[-3].replace(",", "")) for row in board.locator("[data-plot=cache] tbody tr").all_inner_texts()
    ]
    assert sum(blocks) == figures["cache_blocks"]
    trees = board.locator("[data-reason] td:last-child").all_text_contents()
    assert sum(map(int, trees)) == figures["trees_total"]
    expect(board.locator("[data-reason=prefill]")).to_contain_text("prompt")
    expect(board.locator("[data-plot=speed] .dashboard-note").last).to_contain_text("Watched since")
    expect(board.locator("[data-counts=answers]")).to_be_hidden()
    board.locator(".dashboard-server > summary").click()
    expect(board.locator("[data-counts=answers] tbody tr").first).to_be_visible()
    assert all(address.startswith(unasked) for address in tab.addresses)
    assert tab.complaints == []


def test_no_request_when_paused_or_left(tab: Tab, server: str) -> None:
    tab.page.clock.install()
    board = opened(tab, server)
    asked: list[str] = []
    board.on("request", lambda request: asked.append(request.url))
    with board.expect_response("**/metrics"):
        pass
    board.get_by_role("button", name="Pause").click()
    expect(board.get_by_role("status").filter(has_text="Paused")).to_be_visible()
    assert asked_in_a_minute(board, asked) == []
    with board.expect_response("**/metrics"):
        board.get_by_role("button", name="Go on").click()
    board.click("header nav a[href='#/chat']")
    expect(board.locator(".dashboard")).to_be_hidden()
    assert asked_in_a_minute(board, asked) == []
    board.route("**/metrics", lambda route: route.abort())
    board.click("header nav a[href='#/dashboard']")
    expect(board.locator("[data-figure=generated]")).to_be_visible()  # what was known before is there again


def asked_in_a_minute(page: Page, asked: list[str]) -> list[str]:
    """What the page asks the server for while a minute passes by its clock."""
    asked.clear()
    page.clock.run_for(60_000)
    page.evaluate("fetch('health').then(answer => answer.status)")  # the last: what was asked before it is known by now
    *others, last = asked
    assert last.endswith("/health")
    return others


def test_a_server_that_is_away_is_told_and_asked_again(board: Page) -> None:
    board.route("**/metrics", lambda route: route.abort())
    state = board.locator(".dashboard-state")
    expect(state).to_contain_text("The server cannot be reached; trying again", timeout=LATE_MS)
    expect(board.locator("[data-figure=generated]")).to_be_visible()  # what was known stays
    board.unroute("**/metrics")
    expect(state).to_have_attribute("data-state", "live", timeout=LATE_MS)
    expect(state).to_have_text("")


def test_a_missing_key_is_told(tab: Tab, server: str) -> None:
    page = tab.open(f"{server}#/dashboard")
    state = page.locator(".dashboard-state")
    expect(state).to_contain_text("asks for an API key", timeout=LATE_MS)
    expect(page.locator("[data-figure]")).to_have_count(0)


def test_what_was_seen_can_be_saved(board: Page) -> None:
    with board.expect_download() as started:
        board.get_by_role("button", name="Save as CSV").click()
    names, *rows = csv.reader(Path(started.value.path()).read_text(encoding="utf-8").splitlines())
    assert names[0] == "time"
    assert "paceline_steps_total" in names
    assert rows
    assert all(len(row) == len(names) for row in rows)


def test_charts_follow_the_scheme(board: Page) -> None:
    board.emulate_media(color_scheme="light")
    board.get_by_role("button", name="Pause").click()
    expect(board.get_by_role("status").filter(has_text="Paused")).to_be_visible()
    frames(board)  # in which the last scrape is drawn
    draw = "() => document.querySelector('[data-plot=cache] canvas').toDataURL()"
    light = board.evaluate(draw)
    board.emulate_media(color_scheme="dark")
    board.wait_for_function(f"light => ({draw})() !== light", arg=light)
    board.emulate_media(color_scheme="light")
    board.wait_for_function(f"light => ({draw})() === light", arg=light)  # it was the scheme alone


@needs_axe
def test_axe_finds_nothing_at_any_width(board: Page, server: str) -> None:
    ask(server, "Hello.", tokens=16)
    expect(board.locator("[data-drafter=all]")).to_be_visible(timeout=LATE_MS)
    board.locator(".dashboard-server > summary").click()
    for scheme in ("light", "dark"):
        board.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        for width in (320, 1600, 1920):
            board.set_viewport_size({"width": width, "height": 800})
            assert board.evaluate("document.documentElement.scrollWidth") == width
            assert len(set(rows(board))) == 1, "the figures stand in full rows"
            assert violations(board) == [], (scheme, width)
