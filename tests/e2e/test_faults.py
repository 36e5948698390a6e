"""What a broken server, browser or neighbour does to the page, in Chromium."""

from __future__ import annotations

import pytest
from browser import Tab
from playwright.sync_api import expect
from scripted_page import Event, Scripted, complete, say, stream
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

ODD_FIGURES: tuple[object, ...] = (
    *("x", [1], {"steps": "abc"}, {"steps": [None, 5, {}]}, {"spans": [None]}),
    {"steps": [{"ms": "5", "nodes": {}, "drafted": 1, "accepted": 1, "emitted": 1, "tokens": None}]},
    {"steps": [{"ms": 5, "nodes": 1, "drafted": 1, "accepted": 1, "emitted": 1, "tokens": [], "tree": {"texts": 5}}]},
)


def test_odd_figures_cost_no_text(tab: Tab, scripted: Scripted) -> None:
    def odd(connection: ServerConnection, event: Event) -> None:
        say(connection, "response.created", response={"id": "r"})
        for place, figures in enumerate(ODD_FIGURES, 1):
            text = {"response_id": "r", "delta": f" {place}", "x_seq": place}
            say(connection, "response.output_text.delta", **text, x_spec=figures)
        details = {"error": {"message": 5, "code": []}}
        say(connection, "response.done", response={"id": "r", "status": "failed", "status_details": details})

    scripted.reply = odd
    page = tab.open(scripted.url)
    tab.ask("Count")
    assert tab.finish().split() == [str(place) for place in range(1, 1 + len(ODD_FIGURES))]
    expect(page.locator("#notice .sentence")).to_contain_text("try again")
    scripted.reply = lambda connection, event: complete(connection, "Fine")
    page.click("#notice [data-action=retry]")
    expect(page.locator(".turn.assistant .text")).to_have_text("Fine")
    expect(page.locator("#steps .spec-legend")).to_contain_text("1 token")
    assert tab.complaints == []


def test_a_server_that_falls_silent_is_asked_and_left(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: stream(connection, "Half", " a")
    scripted.resume = lambda connection, event: complete(connection, "Half", " a", " loaf")
    tab.page.clock.install()
    page = tab.open(scripted.url)
    tab.ask("More")
    expect(page.locator(".turn.assistant .text")).to_have_text("Half a")
    first = scripted.sessions[-1]
    with page.expect_websocket():
        page.clock.run_for(16_000)  # as when the network went away: the socket stays open, and nothing comes
    assert first[-1] == {"type": "session.update", "session": {"type": "realtime"}}
    expect(page.locator(".turn.assistant .text")).to_have_text("Half a loaf")
    assert scripted.sessions[-1][0]["type"] == "x_response.resume"
    tab.finish()
    assert tab.complaints == []


def test_a_store_that_never_answers_keeps_nobody_waiting(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "Aye")
    tab.page.add_init_script("IDBFactory.prototype.open = () => new EventTarget()")
    tab.open(scripted.url)
    tab.ask("Hi")
    assert tab.finish() == "Aye"
    assert tab.complaints == []


def test_foreign_records_hide_no_conversation(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "Aye")
    page = tab.open(scripted.url)
    tab.ask("About rivers")
    tab.finish()
    page.click("#list-toggle")
    expect(page.locator(".chat-title")).to_have_text(["About rivers"])
    page.evaluate("""() => new Promise((resolve) => {
        indexedDB.open("paceline").onsuccess = ({target: {result}}) => {
            const done = result.transaction("conversations", "readwrite");
            done.objectStore("conversations").put(null, "entry:x");
            done.objectStore("conversations").put({id: {}, title: 5}, "entry:y");
            done.oncomplete = resolve;
        };
    })""")
    page.reload()
    expect(page.locator(".turn.user .text")).to_have_text("About rivers")
    page.click("#list-toggle")
    expect(page.locator(".chat-title")).to_have_text(["About rivers"])
    expect(page.locator("#kept")).to_be_hidden()
    assert tab.complaints == []


def test_each_tab_keeps_its_own_draft(tab: Tab, scripted: Scripted) -> None:
    page = tab.open(scripted.url)
    page.fill("#message", "In the first")
    other = Tab.of(page.context.new_page()).open(scripted.url)
    other.fill("#message", "In the second")
    page.reload()  # at once, before the pause after typing is over in the other one
    assert page.input_value("#message") == "In the first"
    other.reload()
    assert other.input_value("#message") == "In the second"
