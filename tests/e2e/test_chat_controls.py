"""The smaller controls of the chat, in Chromium against a scripted server."""

from __future__ import annotations

import re

import pytest
from browser import REPLY_MS, Tab
from playwright.sync_api import Browser, expect
from scripted_page import Event, Scripted, complete, say, stream
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]


def cut(connection: ServerConnection, event: Event) -> None:
    stream(connection, "Once upon")
    say(connection, "response.done", response={"id": "r", "status": "incomplete", "usage": {"output_tokens": 1}})


def test_a_reply_that_was_cut_goes_on(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = cut
    page = tab.open(scripted.url)
    tab.ask("Tell a story")
    tab.finish()
    assert tab.note().startswith("length limit reached")
    scripted.reply = lambda connection, event: complete(connection, "a time.")
    page.click("[data-action=go-on]")
    expect(page.locator(".turn.assistant .text").last).to_have_text("a time.")
    assert scripted.said() == [("user", "Tell a story"), ("user", "Please go on.")]
    assert page.locator("[data-action=go-on]").count() == 0


def test_an_edit_and_a_reply_do_not_cross(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "One")
    page = tab.open(scripted.url)
    tab.ask("First")
    tab.finish()
    page.click(".turn.user [data-action=edit]")
    expect(page.locator(".chat-edit textarea")).to_be_focused()
    page.keyboard.type(", edited")
    scripted.reply = lambda connection, event: stream(connection, "On and on")
    tab.ask("Second")
    page.focus(".chat-edit textarea")
    page.keyboard.press("Enter")
    expect(page.locator("#notice .sentence")).to_contain_text("stop it, then send")
    assert page.input_value(".chat-edit textarea") == "First, edited"

    page.click("#help-open")
    page.keyboard.press("Escape")  # closes the help and not the reply
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#stop")).to_be_enabled()
    page.focus("#message")
    page.keyboard.press("Escape")
    tab.finish()
    page.focus(".chat-edit textarea")
    page.keyboard.press("Enter")
    expect(page.locator(".turn.user .text")).to_have_text("First, edited")


def test_copying_says_whether_it_worked(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "**One**")
    page = tab.open(scripted.url)
    tab.ask("Hi")
    tab.finish()
    button = page.locator(".turn.assistant [data-action=copy]")
    button.click()
    expect(button).to_have_text("Copied")
    expect(page.locator("#spoken")).to_have_text("Copied.")
    page.focus("#message")
    page.keyboard.press("Control+V")
    assert page.input_value("#message") == "**One**"
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.locator(".turn.user [data-action=copy]").click()
    expect(page.locator("#notice .sentence")).to_contain_text("copy it by hand")


def test_a_theme_is_chosen_and_stays(tab: Tab, scripted: Scripted) -> None:
    page = tab.open(scripted.url)
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light = page.evaluate(ground)
    tab.settings()
    page.get_by_label("Dark").check()
    dark = page.evaluate(ground)
    assert dark != light
    page.reload()
    assert page.evaluate(ground) == dark
    tab.settings()
    page.get_by_label("As the system").check()
    assert page.evaluate(ground) == light


def test_a_long_conversation_opens_at_its_end(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "word " * 60)
    page = tab.open(scripted.url)
    for i in range(20):
        tab.ask(f"Question {i}")
        tab.finish()
    page.reload()
    expect(page.locator(".turn")).to_have_count(40)
    expect(page.locator(".turn.user .text").last).to_be_in_viewport()
    page.wait_for_function(
        "() => { const l = document.querySelector('#log'); return l.scrollTop + l.clientHeight > l.scrollHeight - 48 }"
    )


# steps: whether they are there to begin with. Pressed: what is to be seen with the steps, and with a panel too.
@pytest.mark.parametrize(
    ("width", "steps", "pressed", "panel"),
    [
        (320, False, {"#steps", "#log"}, {"#settings"}),
        (1100, False, {"#steps", "#log"}, {"#settings", "#log"}),
        (1199, False, {"#steps", "#log"}, {"#settings", "#log"}),
        (1200, True, {"#steps", "#log"}, {"#steps", "#settings", "#log"}),
    ],
)
def test_steps_stand_with_the_conversation_where_there_is_room(
    chromium: Browser, scripted: Scripted, width: int, steps: bool, pressed: set[str], panel: set[str]
) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 700})
    page = Tab.of(context.new_page()).open(scripted.url)
    parts = ("#steps", "#settings", "#log")
    expect(page.locator("#steps")).to_be_visible(visible=steps)
    if not steps:
        page.click("#steps-toggle")
    assert {part for part in parts if page.locator(part).is_visible()} == pressed
    page.click("#settings-toggle")
    expect(page.locator("#settings")).to_be_visible()
    assert {part for part in parts if page.locator(part).is_visible()} == panel
    page.get_by_role("button", name="New conversation", exact=True).click()
    hint = page.evaluate("getComputedStyle(document.querySelector('#keys')).display")
    assert (hint == "none") == (width == 320)
    context.close()


@pytest.mark.parametrize("width", [320, 1000, 1920])
def test_panels_leave_a_way_back(chromium: Browser, scripted: Scripted, width: int) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 700})
    page = Tab.of(context.new_page()).open(scripted.url)
    for button, panel in {"#list-toggle": "#conversations", "#settings-toggle": "#settings"}.items():
        page.click(button)
        expect(page.locator(panel)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        page.click(button)
        expect(page.locator(panel)).to_be_hidden()
        expect(page.locator("#message")).to_be_focused()
    context.close()


def test_a_real_server_tells_of_the_prompt_until_it_is_sent(tab: Tab, server: str) -> None:
    page = tab.open(server)
    tab.settings()
    page.fill("#max-tokens", "4")
    page.focus("#message")
    page.keyboard.type("Tell me about the longest of all rivers, please.")
    expect(page.locator("#ahead")).to_have_text(re.compile(r"\d+ of \d+ prompt tokens are ready"), timeout=REPLY_MS)
    page.keyboard.press("Enter")
    expect(page.locator(".turn.assistant")).to_be_visible()
    expect(page.locator("#ahead")).to_have_count(0)
    tab.finish()
    expect(page.locator("#ahead")).to_have_count(0)
    assert tab.complaints == []
