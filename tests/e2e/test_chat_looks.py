"""What of the chat is in sight, on screens of every size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from browser import Tab
from playwright.sync_api import Browser, Page, expect
from scripted_page import Event, Scripted, complete, say, stream
from traced_reply import traced_deltas
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]


def traced(connection: ServerConnection, event: Event) -> None:
    say(connection, "response.created", response={"id": "r"})
    for delta in traced_deltas(60):
        say(connection, "response.output_text.delta", response_id="r", **delta)
    say(connection, "response.done", response={"id": "r", "status": "completed", "usage": {"output_tokens": 60}})


@contextmanager
def sized(chromium: Browser, scripted: Scripted, width: int, height: int) -> Iterator[Page]:
    context = chromium.new_context(viewport={"width": width, "height": height})
    page = Tab.of(context.new_page()).open(scripted.url)
    expect(page.locator("#chip")).to_have_attribute("data-state", "open")
    yield page
    context.close()


# log: whether the conversation is in sight too, with the steps and with a panel.
@pytest.mark.parametrize(
    ("width", "height", "log"),
    [
        (360, 740, (True, False)),
        (640, 360, (False, False)),
        (768, 1024, (True, True)),
        (800, 450, (True, True)),  # 1600 by 900 at 200 %
        (1024, 768, (True, True)),
    ],
)
def test_the_message_field_stays_whatever_is_open(
    chromium: Browser, scripted: Scripted, width: int, height: int, log: tuple[bool, bool]
) -> None:
    scripted.reply = traced
    with sized(chromium, scripted, width, height) as page:
        Tab(page).ask("Go")
        Tab(page).finish()
        for name, panel in {"steps": "#steps", "list": "#conversations", "settings": "#settings"}.items():
            page.click(f"#{name}-toggle")
            expect(page.locator(panel)).to_be_visible()
            expect(page.locator("#log")).to_be_visible(visible=log[name != "steps"])
            for part in ("#message", "#send"):
                expect(page.locator(part)).to_be_in_viewport(ratio=1)
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        page.fill("#message", "More")
        page.press("#message", "Enter")
        expect(page.locator(".turn.user")).to_have_count(2)


def test_words_find_the_message_field_when_the_window_narrows(chromium: Browser, scripted: Scripted) -> None:
    scripted.reply = traced
    with sized(chromium, scripted, 1400, 800) as page:
        Tab(page).ask("Go")
        Tab(page).finish()
        page.locator("#steps button").first.focus()
        page.set_viewport_size({"width": 1000, "height": 700})
        expect(page.locator("#steps")).to_be_visible()  # beside the conversation still
        expect(page.locator("#log")).to_be_visible()
        page.set_viewport_size({"width": 500, "height": 700})
        expect(page.locator("#steps")).to_have_count(0)  # nobody asked for them
        expect(page.locator("#message")).to_be_focused()
        page.keyboard.type("Here")
        assert page.input_value("#message") == "Here"
        page.click("#steps-toggle")
        page.locator("#steps button").first.focus()
        page.keyboard.press("Alt+Shift+S")  # goes before the steps
        expect(page.locator("#settings")).to_be_visible()
        expect(page.locator("#message")).to_be_focused()


def test_a_prompt_to_begin_with_is_one_press_away(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "Since", " blue", " scatters")
    page = tab.open(scripted.url)
    expect(page.locator("#figures dl")).to_have_count(0)
    page.get_by_role("button", name="Why is the sky blue?").click()
    expect(page.locator("#message")).to_be_focused()
    expect(page.locator(".turn.assistant .text")).to_have_text("Since blue scatters")
    tab.finish()
    assert scripted.said() == [("user", "Why is the sky blue?")]
    expect(page.locator("#tokens")).to_have_text("5")


def test_the_newest_words_are_one_press_away(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: stream(connection, *(f"Line {i}.\n\n" for i in range(80)))
    page = tab.open(scripted.url)
    newest = page.locator("#newest")
    tab.ask("Go")
    last = page.locator("#log").get_by_text("Line 79.")
    expect(last).to_be_in_viewport()
    expect(newest).to_have_count(0)
    page.hover("#log")
    page.mouse.wheel(0, -2000)
    expect(last).not_to_be_in_viewport()
    newest.click()
    expect(last).to_be_in_viewport()
    expect(newest).to_have_count(0)
    expect(page.locator("#log")).to_be_focused()
    stream(scripted.connections[-1], "Line 80.", after=80)
    expect(page.locator("#log").get_by_text("Line 80.")).to_be_in_viewport()  # it follows again


def test_whoever_comes_back_to_the_chat_can_write(tab: Tab, scripted: Scripted) -> None:
    page = tab.open(scripted.url)
    page.click("header nav a[href='#/race']")
    expect(page.locator("main.race")).to_be_visible()
    page.click("header nav a[href='#/chat']")
    expect(page.locator("#message")).to_be_focused()


def test_conversations_take_a_line_each(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "Aye")
    page = tab.open(scripted.url)
    for topic in ("Rivers", "Roads", "Roofs"):
        tab.ask(topic)
        tab.finish()
        page.click("#new")
    page.click("#list-toggle")
    expect(page.get_by_role("heading", name="Today")).to_be_visible()
    lines = page.locator(".chat-list li")
    expect(lines).to_have_count(3)
    assert all(box["height"] <= 42 for line in lines.all() if (box := line.bounding_box()))
    page.locator(".chat-title", has_text="Rivers").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Rename Rivers")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Rename Rivers")).to_have_count(0)
    expect(page.get_by_role("button", name="More for Rivers")).to_be_focused()
    page.keyboard.press("Enter")
    with page.expect_download() as download:  # of one that is not open
        page.get_by_role("button", name="Markdown file of Rivers").click()
    assert download.value.suggested_filename == "Rivers.md"
    assert "Aye" in Path(download.value.path()).read_text()


def test_trees_are_tuned_from_the_settings(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "Aye")
    page = tab.open(scripted.url)
    tab.settings()
    page.click("#settings summary")
    page.get_by_label("Drafter").select_option("suffix")
    page.get_by_label("Largest tree").fill("none")
    page.keyboard.press("Tab")
    expect(page.locator("#max-nodes-problem")).to_contain_text("whole number from 1 to 64")
    expect(page.locator("#max-nodes")).not_to_be_focused()  # nobody is kept there
    page.get_by_label("Largest tree").fill("8")
    tab.ask("Hi")
    tab.finish()
    speculation = scripted.sessions[-1][-1]["response"]["speculation"]
    assert speculation == {"mode": "suffix", "max_nodes": 8, "trace": True}
    page.get_by_role("button", name="Reset all").click()
    assert page.get_by_label("Drafter").input_value() == "auto"
    page.get_by_role("button", name="Undo the reset").click()
    assert page.get_by_label("Drafter").input_value() == "suffix"
