"""The race in Chromium: the same reply plain and speculating."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest
from axe import needs_axe, violations
from browser import REPLY_MS, Tab, frames
from playwright.sync_api import Browser, Page, expect
from scripted_page import Event, Scripted, complete, say, stream
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

LANES_PLACE = "document.querySelector('.race-lanes').offsetTop"
PIECES = ("The sky", " is blue", " because", " air scatters", " blue light.")


def opened(page: Page, url: str) -> Page:
    page.goto(f"{url}#/race")
    expect(page.locator("#race-start")).to_have_text("Race")
    return page


def leg(event: Event) -> str:
    return str(event["event_id"]).removeprefix("race-")


def paced(text: dict[str, tuple[str, ...]], *, plain_s: float = 0.06) -> Callable[[ServerConnection, Event], None]:
    """Replies of these pieces by lane, the plain one slower: so many seconds a piece."""

    def reply(connection: ServerConnection, event: Event) -> None:
        pieces = text.get(leg(event), ("Warm",))
        for i, piece in enumerate(pieces):
            time.sleep(plain_s if leg(event) == "plain" else 0.02)
            counts = {"drafted": 2 * i, "accepted": i, "emitted": i + 1}
            say(connection, "response.output_text.delta", response_id="r", delta=piece, x_seq=i + 1, x_spec=counts)
        usage = {"output_tokens": sum(range(len(pieces) + 1))}
        say(connection, "response.done", response={"id": "r", "status": "completed", "usage": usage})

    return reply


def ended(frame: str | bytes) -> list[str]:
    """The response that an event of the server ends, if it does."""
    event = json.loads(frame)
    return [event["response"]["id"]] if event["type"] == "response.done" else []


def text_of(page: Page, lane: str) -> str:
    return page.locator(f".race-lane[data-lane={lane}] .race-text").text_content() or ""


def test_lanes_fill_and_are_judged(tab: Tab, scripted: Scripted, tmp_path: Path) -> None:
    scripted.reply = paced({"plain": PIECES, "speculating": PIECES}, plain_s=0.4)  # on a busy machine too
    page = opened(tab.page, scripted.url)
    page.fill("#race-seed", "7")
    page.fill("#race-maxNodes", "4")
    page.select_option("#race-mode", "suffix")
    page.focus("#race-start")
    page.keyboard.press("Enter")
    expect(page.locator("#race-start")).to_have_text("Stop")
    expect(page.locator("#race-seed")).to_be_disabled()
    expect(page.locator(".race-lanes")).to_be_visible()
    place = page.evaluate(LANES_PLACE)
    verdict = page.locator("#race-verdict")
    expect(verdict).to_contain_text("Identical text: 48 characters, 15 tokens.")
    expect(verdict).to_contain_text("times as fast.")
    expect(verdict.locator(".race-verdict > span").first).to_contain_text("Saved ")
    expect(page.locator(".race-ran")).to_have_text("Raced: Edit · seed 7 · 128 tokens · suffix · trees of 4")
    expect(page.locator("#race-seed")).to_be_hidden()
    assert page.evaluate(LANES_PLACE) == place, "the end of a race moves nothing"
    assert text_of(page, "plain") == text_of(page, "speculating") == "".join(PIECES)
    assert page.evaluate("document.activeElement.id") == "race-start"

    warm, plain, speculating = (event["response"] for event in scripted.sessions[-1])
    assert plain["speculation"] == {"mode": "none", "trace": True}
    assert speculating["speculation"] == {"mode": "suffix", "trace": True, "max_nodes": 4}
    assert {**plain, "speculation": None} == {**speculating, "speculation": None}
    assert warm == {**plain, "max_output_tokens": 1}
    assert (plain["seed"], plain["conversation"], plain["max_output_tokens"]) == (7, "none", 128)

    expect(page.locator(".race-canvas canvas")).to_be_visible()
    with page.expect_download() as download:
        page.click("#race-export")
    download.value.save_as(tmp_path / "run.json")
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["identical"]
    assert run["lanes"]["plain"]["total_ms"] > run["lanes"]["speculating"]["total_ms"]

    page.click("#race-start")
    expect(page.locator(".race-scroll tbody td").nth(1)).to_have_text("2")
    assert [leg(event) for event in scripted.sessions[-1]] == ["warm", "speculating", "plain"]
    assert tab.complaints == []


def test_a_difference_is_shown_at_its_place(tab: Tab, scripted: Scripted) -> None:
    hostile = "<img src=x onerror='window.owned = 1'>"
    scripted.reply = paced({"plain": PIECES, "speculating": (*PIECES[:3], f" {hostile}")})
    page = opened(tab.page, scripted.url)
    page.click("#race-start")
    expect(page.locator("#race-verdict")).to_contain_text("The texts differ from character 25 on.")
    expect(page.locator("#race-verdict")).to_contain_text("fault of the server")
    assert page.locator(".race-difference mark").all_text_contents() == ["air scatters blue light.", hostile]
    assert page.evaluate("window.owned") is None
    assert tab.complaints == []


PLAYED = """
window.played = false;
new MutationObserver(() => { played ||= document.querySelector('#race-play')?.textContent === 'Pause'; })
  .observe(document.querySelector('main.race'), {subtree: true, childList: true, characterData: true});
"""


def test_the_replay_shows_both_lanes_at_any_moment(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = paced({"plain": PIECES, "speculating": PIECES})
    page = opened(tab.page, scripted.url)
    page.evaluate(PLAYED)
    page.click("#race-start")
    coming = page.locator(".race-lane[data-lane=plain] .race-coming")
    expect(page.locator("#race-verdict")).to_contain_text("Identical text")
    expect(page.locator("#race-play")).to_have_text("Watch side by side")
    assert page.evaluate("played"), "at once, by itself"
    expect(coming).to_have_count(0)
    tokens = page.locator(".race-lane[data-lane=plain] .race-figures > div:nth-child(3) dd")
    expect(tokens).to_have_text("15")
    page.select_option("#race-speed", "0.25")
    page.click("#race-play")
    expect(page.locator("#race-play")).to_have_text("Pause")
    expect(coming).not_to_have_count(0)
    page.click("#race-play")
    page.focus("#race-moment")
    page.keyboard.press("Home")
    expect(coming).to_have_count(len(PIECES))
    expect(tokens).to_have_text("–")
    page.keyboard.press("End")
    expect(coming).to_have_count(0)
    assert tab.complaints == []


def test_who_asks_for_little_motion_sees_the_end(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = paced({"plain": PIECES, "speculating": PIECES})
    tab.page.emulate_media(reduced_motion="reduce")
    page = opened(tab.page, scripted.url)
    page.click("#race-start")
    expect(page.locator("#race-verdict")).to_contain_text("Identical text")
    expect(page.locator(".race-playback")).to_contain_text("little motion")
    expect(page.locator("#race-moment")).to_be_visible()
    expect(page.locator(".race-coming")).to_have_count(0)


def test_a_result_stands_back_when_the_form_asks_for_another_race(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = paced({"plain": PIECES, "speculating": PIECES})
    page = opened(tab.page, scripted.url)
    page.fill("#race-seed", "7")
    page.click("#race-start")
    changed = page.locator(".race-changed")
    expect(page.locator("#race-verdict")).to_contain_text("Identical text")
    expect(changed).to_have_text("")
    page.click(".race-choice > summary")
    page.select_option("#race-prompt", "chat")
    expect(changed).to_have_text("The form or the chat’s settings have changed; race again.")
    expect(page.locator(".race-ran")).to_have_text("Raced: Edit · seed 7 · 128 tokens · auto")
    page.click("#race-start")
    expect(page.locator(".race-ran")).to_have_text("Raced: Conversation · seed 7 · 128 tokens · auto")
    expect(page.locator("#race-verdict")).to_contain_text("Identical text")
    expect(changed).to_have_text("")
    assert tab.complaints == []


def test_a_race_that_is_left_runs_on_unseen(tab: Tab, scripted: Scripted) -> None:
    ends: list[str] = []
    scripted.reply = paced({"plain": PIECES * 5, "speculating": PIECES * 5})
    tab.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: ends.extend(ended(frame))))
    page = opened(tab.page, scripted.url)
    page.click("#race-start")
    expect(page.locator(".race-lane[data-lane=plain] .race-text")).to_contain_text(PIECES[0])
    page.click("nav a[href='#/chat']")
    expect(page.locator("#race-start")).to_be_hidden()
    before = text_of(page, "plain")
    tab.until(lambda: len(ends) == 3, "the race stood still while it was not looked at")
    frames(page)
    assert text_of(page, "plain") == before
    page.click("nav a[href='#/dashboard']")
    expect(page.locator("#race-start")).to_be_hidden()
    page.click("nav a[href='#/race']")
    expect(page.locator("#race-verdict")).to_contain_text("Identical text")
    expect(page.locator(".race-canvas canvas")).to_be_visible()
    assert text_of(page, "plain") == text_of(page, "speculating") == "".join(PIECES * 5)
    assert len(scripted.sessions) == 2, "the chat's session and that of the one race"


def test_stop_and_refusals_are_sentences(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: stream(connection, "On and on")
    page = opened(tab.page, scripted.url)
    page.select_option("#race-prompt", "own")
    page.click("#race-start")
    expect(page.locator("#race-own-problem")).to_contain_text("no prompt yet")
    expect(page.locator("#race-own")).to_be_focused()
    page.keyboard.type("Hi")
    page.click("#race-start")
    expect(page.locator("#race-start")).to_have_text("Stop")
    page.click("#race-start")
    expect(page.locator("#race-verdict")).to_contain_text("Stopped before the end")

    message = "'medusa' is not loaded here; use one of auto, none."
    scripted.reply = lambda connection, event: say(
        connection, "error", error={"message": message, "event_id": event["event_id"]}
    )
    page.click("#race-start")
    expect(page.locator("#race-verdict")).to_have_text(f"{message} Nothing was compared; change the race or try again.")
    scripted.reply = lambda connection, event: connection.close(1012)
    page.click("#race-start")
    expect(page.locator("#race-verdict")).to_contain_text("connection was lost in the middle of the race")
    scripted.reply = complete_anything
    page.click("#race-start")
    expect(page.locator("#race-verdict")).to_contain_text("Identical text")
    assert tab.complaints == []


def complete_anything(connection: ServerConnection, event: Event) -> None:
    complete(connection, "Aye")


def test_a_key_is_asked_for(tab: Tab, scripted: Scripted) -> None:
    scripted.key = "sesame"
    page = opened(tab.page, scripted.url)
    page.click("#race-start")
    expect(page.locator("#race-verdict")).to_contain_text("asks for an API key")
    page.click("#race-verdict a")
    expect(page.locator("#message")).to_be_visible()


def test_a_race_on_a_phone_ends_with_its_verdict_in_sight(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = paced({"plain": PIECES * 4, "speculating": PIECES * 4})
    tab.page.set_viewport_size({"width": 390, "height": 844})
    page = opened(tab.page, scripted.url)
    for _ in range(2):  # the second from the foot of the first one's results
        page.click("#race-start")
        expect(page.locator("#race-verdict")).to_contain_text("Identical text")
        expect(page.locator("#race-verdict")).to_be_in_viewport(ratio=1)
        page.locator("#race-export").scroll_into_view_if_needed()


@needs_axe
@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1920, "dark")])
def test_fits_every_screen(chromium: Browser, scripted: Scripted, width: int, scheme: Literal["light", "dark"]) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 700}, color_scheme=scheme)
    scripted.reply = paced({"plain": ("word " * 40, "unbroken" * 60), "speculating": ("wide" * 100,)})
    page = opened(context.new_page(), scripted.url)
    page.click("#race-start")
    expect(page.locator(".race-canvas canvas")).to_be_visible()
    overflow = "[...document.querySelectorAll('html, .view')].map(box => box.scrollWidth - box.clientWidth)"
    assert page.evaluate(overflow) == [0, 0, 0]
    assert violations(page) == []
    page.click(".race-choice > summary")
    page.select_option("#race-prompt", "chat")
    expect(page.locator(".race-changed")).not_to_be_empty()
    assert page.evaluate(overflow) == [0, 0, 0]
    assert violations(page) == [], "the form has changed"
    context.close()


def test_a_real_race_is_won_with_the_same_text(tab: Tab, server: str) -> None:
    page = opened(tab.page, server)
    page.select_option("#race-prompt", "edit")
    page.fill("#race-seed", "7")
    page.fill("#race-limit", "40")
    page.click("#race-start")
    expect(page.locator("#race-verdict")).to_contain_text("Identical text: ", timeout=REPLY_MS)
    expect(page.locator("#race-play")).to_have_text("Watch side by side", timeout=REPLY_MS)  # it was watched once
    figures: Any = page.locator(".race-lane[data-lane=speculating] .race-figures dd").all_text_contents()
    assert float(figures[3]) > 1  # tokens per step: most of the reply stands in the prompt
    assert text_of(page, "plain") == text_of(page, "speculating") != ""
    with page.expect_download() as download:
        page.click("#race-export")
    lanes = json.loads(download.value.path().read_text())["lanes"]
    assert len(lanes["plain"]["steps"]) > len(lanes["speculating"]["steps"]) > 0
    assert tab.complaints == []
