"""One conversation in several tabs, in Chromium against a scripted server."""

from __future__ import annotations

import pytest
from browser import Tab
from playwright.sync_api import Page, expect
from scripted_page import Scripted, complete, stream

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]


def duplicate(page: Page) -> Page:
    """As the browser's own command does, with the tab's storage."""
    with page.expect_popup() as popup:
        page.evaluate("window.open(location.href)")
    return popup.value


def test_a_reply_comes_to_one_tab(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: stream(connection, "Half", " a")
    page = tab.open(scripted.url)
    tab.ask("More")
    expect(page.locator(".turn.assistant .text")).to_have_text("Half a")
    page.wait_for_function("sessionStorage['paceline.open']")
    other = Tab.of(duplicate(page))
    for _ in range(2):
        expect(other.page.locator(".turn.assistant .note")).to_have_text("being written in another tab")
        expect(other.page.locator("#chip")).to_have_text("scripted")
        other.page.reload()
    expect(other.page.locator(".turn.assistant .note")).to_have_text("being written in another tab")
    other.ask("And this?")
    expect(other.page.locator("#notice .sentence")).to_contain_text("in another tab")
    expect(other.page.locator("#message")).to_have_value("And this?")
    expect(page.locator("#stop")).to_be_visible()
    assert not any(event["type"] == "x_response.resume" for heard in scripted.sessions for event in heard)

    complete(scripted.connections[0], "Half", " a", " loaf", after=2)
    for shown in (page, other.page):
        expect(shown.locator(".turn")).to_have_count(2)
        expect(shown.locator(".turn.assistant")).to_have_attribute("data-state", "done")
    scripted.reply = lambda connection, event: complete(connection, "Yes")
    other.page.press("#message", "Enter")
    for shown in (page, other.page):
        expect(shown.locator(".turn")).to_have_count(4)
        expect(shown.locator("#kept")).to_be_hidden()
    assert tab.complaints == other.complaints == []


def test_a_new_title_makes_no_copy(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: stream(connection, "One")
    page = tab.open(scripted.url)
    tab.ask("Shared")
    expect(page.locator(".turn.assistant .text")).to_have_text("One")
    other = Tab.of(page.context.new_page())
    other.open(scripted.url).click("#list-toggle")
    other.page.get_by_role("button", name="More for Shared").click()
    other.page.get_by_role("button", name="Rename Shared").click()
    other.page.get_by_label("Title").fill("About one")
    other.page.keyboard.press("Enter")
    expect(other.page.locator(".chat-title")).to_have_text("About one")
    complete(scripted.connections[0], "One", " and all", after=1)
    tab.finish()
    expect(page.locator("#kept")).to_be_hidden()
    page.click("#list-toggle")
    expect(page.locator(".chat-title")).to_have_text("About one")
    assert tab.complaints == other.complaints == []


def test_a_tab_alone_chats_too(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "Aye")
    tab.page.add_init_script("window.BroadcastChannel = class { constructor() { throw new Error('no') } }")
    page = tab.open(scripted.url)
    tab.ask("Hi")
    assert tab.finish() == "Aye"
    page.reload()
    expect(page.locator(".turn")).to_have_count(2)
    assert tab.complaints == []


def test_tabs_lose_nothing_of_each_other(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "One")
    tab.open(scripted.url)
    tab.ask("Shared")
    tab.finish()
    other = Tab.of(tab.page.context.new_page())
    page = other.open(scripted.url)
    page.click("#list-toggle")
    page.locator(".chat-title").click()
    expect(page.locator(".turn")).to_have_count(2)
    other.ask("From the other")
    other.finish()
    expect(tab.page.locator(".turn")).to_have_count(4)  # it was idle, and shows what the other one said

    scripted.reply = lambda connection, event: stream(connection, "On and on")
    tab.ask("At the same time")
    expect(tab.page.locator("#stop")).to_be_visible()
    other.ask("Here too")
    copies = [tab.page.locator("#kept"), page.locator("#kept")]  # of the slower one
    other.until(lambda: any(copy.is_visible() for copy in copies), "neither tab says that its conversation is a copy")
    assert [copy.is_visible() for copy in copies].count(True) == 1
    for shown in (tab.page, page):
        shown.keyboard.press("Escape")
        expect(shown.locator("#send")).to_be_visible()
    page.click("#list-toggle")
    expect(page.locator(".chat-title")).to_have_count(2)
    assert tab.complaints == other.complaints == []
