"""The frame around the views in Chromium: what goes on in one of them while another is looked at."""

from __future__ import annotations

import threading

import pytest
from browser import Tab
from playwright.sync_api import expect
from scripted_page import Event, Scripted, complete, stream
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]


def test_the_chat_goes_on_unseen_and_draws_nothing(tab: Tab, scripted: Scripted) -> None:
    left, seen = threading.Event(), threading.Event()

    def reply(connection: ServerConnection, event: Event) -> None:
        stream(connection, "One ", "two ")
        left.wait(20)
        stream(connection, "three ", "four ", after=2)
        seen.wait(20)
        complete(connection, "five", after=4)

    scripted.reply = reply
    with tab.page.expect_websocket() as opened:
        page = tab.open(scripted.url)
    text = page.locator(".turn.assistant .text")
    tab.ask("Count.")
    expect(text).to_have_text("One two")
    page.evaluate("""() => {
        window.drawn = 0;
        const count = new MutationObserver((changes) => { drawn += changes.length; });
        for (const place of document.querySelectorAll('.turn.assistant .text, #figures'))
            count.observe(place, {subtree: true, childList: true, characterData: true});
    }""")
    page.click("header nav a[href='#/race']")
    expect(page.locator("main.race")).to_be_visible()
    with opened.value.expect_event("framereceived", lambda frame: "four" in frame):
        left.set()
    frames = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(done), 100)))"
    page.evaluate(frames)
    assert page.evaluate("drawn") == 0
    page.click("header nav a[href='#/chat']")
    expect(text).to_have_text("One two three four")
    seen.set()
    assert tab.finish() == "One two three four five"
    assert tab.complaints == []
