"""What people do with conversations, in Chromium against a scripted server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from axe import needs_axe, violations
from browser import Tab, frames
from playwright.sync_api import expect
from scripted_page import Event, Scripted, complete, say, stream
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]


def echo(connection: ServerConnection, event: Event) -> None:
    complete(connection, "Aye", f" {event['event_id']}")


def breaking(connection: ServerConnection, event: Event) -> None:
    stream(connection, "Half", " a")
    connection.close(1012)


def resuming(connection: ServerConnection, event: Event) -> None:
    assert event["response_id"] == "r"
    known = max(0, event["starting_after"] - 1)  # the last delta that arrived comes again
    complete(connection, *("Half", " a", " loaf")[known:], after=known)


def texts(tab: Tab) -> list[str]:
    shown = tab.page.locator(".turn .text")
    for text in shown.all():
        expect(text).not_to_be_empty()  # a reply is drawn in a frame of its own
    return shown.all_text_contents()  # not the inner ones: a turn has none until a frame found it in sight


def test_a_reply_goes_on_after_a_drop(tab: Tab, scripted: Scripted) -> None:
    scripted.reply, scripted.resume = breaking, resuming
    page = tab.open(scripted.url)
    tab.ask("More")
    tab.finish()
    expect(page.locator(".turn.assistant .text")).to_have_text("Half a loaf")
    expect(page.locator("#notice")).to_be_hidden()
    assert scripted.sessions[-1][0]["type"] == "x_response.resume"
    assert scripted.sessions[-1][0]["starting_after"] == 2
    assert tab.complaints == []


def test_a_reply_goes_on_after_a_reload(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: stream(connection, "Half", " a")
    scripted.resume = resuming
    page = tab.open(scripted.url)
    tab.ask("More")
    expect(page.locator(".turn.assistant .text")).to_have_text("Half a")
    page.reload()
    expect(page.locator(".turn.assistant .text")).to_have_text("Half a loaf")
    tab.finish()
    assert texts(tab) == ["More", "Half a loaf"]
    assert page.evaluate("location.hash") == ""


def test_turns_can_be_edited_and_had_back(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "One")
    page = tab.open(scripted.url)
    tab.ask("First")
    tab.finish()
    tab.ask("Second")
    tab.finish()
    scripted.reply = lambda connection, event: complete(connection, "Two")
    page.locator(".turn.user [data-action=edit]").first.click()
    expect(page.locator(".chat-edit textarea")).to_be_focused()
    page.keyboard.type(", better")
    page.keyboard.press("Enter")
    expect(page.locator(".turn.assistant .text")).to_have_text("Two")
    assert texts(tab) == ["First, better", "Two"]
    assert scripted.said() == [("user", "First, better")]

    page.click("#notice [data-action=undo]")
    expect(page.locator(".turn")).to_have_count(4)
    assert texts(tab) == ["First", "One", "Second", "One"]

    page.click("[data-action=again]")
    expect(page.locator(".turn.assistant .text").last).to_have_text("Two")
    assert scripted.said() == [("user", "First"), ("assistant", "One"), ("user", "Second")]

    page.focus("#message")
    page.keyboard.press("ArrowUp")
    expect(page.locator(".chat-edit textarea")).to_be_focused()
    assert page.input_value(".chat-edit textarea") == "Second"
    page.keyboard.press("Escape")
    expect(page.locator("#message")).to_be_focused()
    assert tab.complaints == []


def test_conversations_are_kept(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = echo
    page = tab.open(scripted.url)
    tab.ask("About rivers")
    expect(page.locator(".turn.assistant .text")).to_have_text(re.compile(r"^Aye page_\d+$"))  # all of it is drawn
    first = tab.finish()
    page.click("#new")
    tab.ask("About roads")
    tab.finish()
    page.reload()
    expect(page.locator(".turn.user .text")).to_have_text("About roads")

    page.click("#list-toggle")
    titles = page.locator(".chat-title")
    expect(titles).to_have_text(["About roads", "About rivers"])
    page.click("[aria-label='More for About rivers']")
    page.click("[aria-label='Rename About rivers']")
    expect(page.locator("#conversations input:focus")).to_have_count(1)
    page.keyboard.type("Water")
    page.keyboard.press("Enter")
    expect(titles).to_have_text(["About roads", "Water"])
    expect(page.locator("[aria-label='More for Water']")).to_be_focused()
    titles.filter(has_text="Water").click()
    expect(page.locator(".turn.user .text")).to_have_text("About rivers")
    assert texts(tab) == ["About rivers", first]
    tab.ask("More")  # its session has what was said before
    tab.finish()
    assert scripted.said() == [("user", "About rivers"), ("assistant", first), ("user", "More")]

    page.click("#list-toggle")
    page.click("[aria-label='More for Water']")
    page.click("[aria-label='Delete Water']")
    expect(titles).to_have_text(["About roads"])
    assert page.locator(".turn").count() == 0
    expect(page.locator("[data-action=restore]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(titles).to_have_text(["Water", "About roads"])
    expect(page.locator("#conversations")).to_be_focused()

    titles.first.click()
    expect(page.locator(".turn")).to_have_count(4)
    page.click("#list-toggle")
    with page.expect_download() as download:
        page.get_by_role("button", name="JSON").click()
    assert download.value.suggested_filename == "Water.json"
    messages = json.loads(Path(download.value.path()).read_text())["messages"]
    assert [message["content"] for message in messages][:2] == ["About rivers", first]
    assert tab.complaints == []


def test_a_browser_that_keeps_nothing(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = echo
    tab.page.add_init_script("IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError'); }")
    page = tab.open(scripted.url)
    tab.ask("Hi")
    assert tab.finish().startswith("Aye")
    expect(page.locator("#kept .sentence")).to_contain_text("keeps no conversations")
    assert tab.complaints == []


def test_the_prompt_is_made_while_it_is_typed(tab: Tab, scripted: Scripted) -> None:
    pending = ""

    def answer(connection: ServerConnection, event: Event) -> None:
        """As the real server; when the text is sent, what was still on its way comes before the answer to that."""
        nonlocal pending
        if event["type"] in ("input_text.append", "input_text.commit"):
            pending += event.get("text", "")
            end = len(pending)
            say(
                connection,
                "x_input_text.prefilled",
                tokens=end + 20,
                stable_tokens=end + 1,
                cached_tokens=end,
                text_end=end,
            )
        if event["type"] in ("input_text.clear", "input_text.commit"):
            pending = ""
            say(connection, "input_text.cleared" if event["type"] == "input_text.clear" else "input_text.committed")

    scripted.reply, scripted.answer = (lambda connection, event: complete(connection, "Aye")), answer
    page = tab.open(scripted.url)
    expect(page.locator("#chip")).to_have_text("scripted")
    page.focus("#message")
    page.keyboard.type("Tell me more")
    ahead = page.locator("#ahead")
    expect(ahead).to_have_text("12 of 32 prompt tokens are ready; the last words may still change")
    expect(ahead.get_by_role("progressbar")).to_have_js_property("position", 12 / 32)
    page.keyboard.press("Enter")
    tab.finish()
    expect(ahead).to_have_count(0)
    assert scripted.said() == [("user", "Tell me more")]
    kinds = [event["type"] for event in scripted.sessions[-1]]
    assert kinds[:2] == ["session.update", "input_text.append"]
    assert kinds[-2:] == ["input_text.commit", "response.create"]

    page.keyboard.type("And")
    expect(ahead).to_contain_text("3 of 23 prompt tokens are ready")
    page.keyboard.type(" so on")
    page.keyboard.press("Enter")  # before the pause has passed
    tab.finish()
    assert scripted.said() == [("user", "Tell me more"), ("user", "And so on")]

    page.keyboard.type("Left here")
    expect(ahead).to_contain_text("9 of 29 prompt tokens are ready")
    page.reload()
    assert page.input_value("#message") == "Left here"


def test_shortcuts_and_help(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = echo
    page = tab.open(scripted.url)
    tab.ask("Hi")
    tab.finish()
    page.keyboard.press("Alt+Shift+S")
    expect(page.locator("#settings")).to_be_visible()
    page.keyboard.press("Alt+Shift+S")
    expect(page.locator("#settings")).to_be_hidden()
    page.keyboard.press("Alt+Shift+L")
    expect(page.locator("#conversations")).to_be_visible()
    page.keyboard.press("Alt+Shift+L")
    page.focus("#log")
    steps = page.locator("#steps")
    shown = steps.is_visible()
    page.keyboard.press("Alt+Shift+P")
    expect(steps).to_be_visible(visible=not shown)
    page.keyboard.press("Alt+Shift+P")
    expect(steps).to_be_visible(visible=shown)
    page.keyboard.press("Alt+Shift+M")
    expect(page.locator("#message")).to_be_focused()
    page.keyboard.press("Alt+Shift+K")
    expect(page.get_by_role("dialog")).to_contain_text("starts a new conversation")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    frames(page)  # a dialog is gone before it says so
    page.keyboard.press("Alt+Shift+N")
    expect(page.locator("#empty")).to_be_visible()
    assert page.input_value("#message") == ""


def test_a_reply_is_said_once_and_whole(tab: Tab, scripted: Scripted) -> None:
    words = [f" word{i}" for i in range(20)]
    scripted.reply = lambda connection, event: complete(connection, "**So**:", *words)
    page = tab.open(scripted.url)
    page.evaluate("""() => {
        window.said = [];
        const spoken = document.querySelector('#spoken');
        const kinds = {subtree: true, childList: true, characterData: true};
        new MutationObserver(() => said.push(spoken.textContent)).observe(spoken, kinds);
    }""")
    tab.ask("Count")
    tab.finish()
    expect(page.locator("#spoken")).to_contain_text("word19")
    text = texts(tab)[-1]
    said = page.evaluate("window.said")
    assert len(said) == 1
    assert text.startswith("So:")
    assert said[0].strip().startswith(text.strip())
    live = page.locator("[aria-live]:not([aria-live=off]), [role=status], [role=alert]")
    assert not any("word19" in region.inner_text() for region in live.all() if region.get_attribute("id") != "spoken")


@needs_axe
def test_axe_finds_nothing_in_what_opens(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = echo
    page = tab.open(scripted.url)
    tab.ask("Hi")
    tab.finish()
    page.click("#list-toggle")
    assert violations(page) == []
    page.click("[aria-label^=More]")
    assert violations(page) == []
    page.click("[aria-label^=Rename]")
    assert violations(page) == []
    page.click("#list-toggle")
    page.locator(".turn.user [data-action=edit]").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.click("#help-open")
    assert violations(page) == []
