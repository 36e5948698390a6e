"""The page in Chromium, against a scripted server that says what no real model would."""

from __future__ import annotations

from typing import Any

import pytest
from browser import Tab
from playwright.sync_api import Browser, expect
from scripted_page import Event, Scripted, complete, say, stream
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]


def test_hostile_text_stays_text(tab: Tab, scripted: Scripted) -> None:
    attack = "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'><b>\n\n  bold\t</b>&lt;"
    scripted.model = f"model {attack}"
    scripted.reply = lambda connection, event: complete(connection, attack, attack)  # as a lone token and as a run
    page = tab.open(scripted.url)
    tab.ask(attack)
    shown = tab.finish()  # as Markdown, in which markup is text too
    assert shown.count("<script>window.owned = 1</script><img src=x onerror='window.owned = 1'><b>") == 2
    assert page.locator(".turn.user .text").text_content() == attack
    assert page.text_content("#chip") == scripted.model

    scripted.reply = lambda connection, event: say(
        connection, "error", error={"message": attack, "event_id": event["event_id"]}
    )
    tab.ask("Again")
    expect(page.locator("#notice .sentence")).to_have_text(attack, use_inner_text=False)
    assert page.locator("body :is(script, b), main img").count() == 0
    page.click("#list-toggle")
    expect(page.locator("#conversations .chat-title")).to_have_text(attack.splitlines()[0][:59] + "…")
    assert page.evaluate("window.owned") is None
    assert tab.complaints == []


def test_content_policy_is_in_force(tab: Tab, scripted: Scripted) -> None:
    page = tab.open(scripted.url)
    refused = """markup => {
        const script = document.createElement('script');
        script.append('window.owned = 1');
        document.body.append(script);
        try { document.body.innerHTML = markup; return 'taken'; } catch (error) { return error.message; }
    }"""
    assert "TrustedHTML" in page.evaluate(refused, "<img src=x onerror='window.owned = 1'>")
    assert page.evaluate("window.owned") is None
    assert any("TrustedScript" in complaint for complaint in tab.complaints)


def test_figures_follow_the_stream(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "One", " two three", " four five")
    page = tab.open(scripted.url)
    tab.ask("Count")
    assert tab.finish() == "One two three four five"
    expect(page.locator("#tokens")).to_have_text("5")
    expect(page.locator("#per-step")).to_have_text("1.67")
    expect(page.locator("#acceptance")).to_have_text("33 % of 6")
    assert "speculation on" in tab.note()
    assert "1.67 tokens per step" in tab.note()


def test_settings_reach_the_request_and_outlive_a_reload(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "Aye")
    page = tab.open(scripted.url)
    tab.settings()
    for selector, value in {
        "#instructions": "Be a pirate.",
        "#temperature": "0.2",
        "#seed": "5",
        "#max-tokens": "9",
    }.items():
        page.fill(selector, value)
    page.uncheck("#speculation")
    page.reload()
    tab.ask("Hi")
    tab.finish()
    (update,) = [event for event in scripted.sessions[-1] if event["type"] == "session.update"]
    create = scripted.sessions[-1][-1]
    assert update["session"]["instructions"] == "Be a pirate."
    assert create["response"] == {
        "speculation": {"mode": "none", "trace": True},
        "x_resume": True,
        "temperature": 0.2,
        "seed": 5,
        "max_output_tokens": 9,
    }

    tab.settings()
    page.fill("#temperature", "hot")
    page.click("#settings-toggle")
    tab.ask("Hi again")
    expect(page.locator("#temperature")).to_be_focused()
    expect(page.locator("#temperature-problem")).to_contain_text("number from 0 to 2")
    assert page.input_value("#message") == "Hi again"
    assert tab.complaints == []


def test_keyboard(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: stream(connection, "On and on")
    page = tab.open(scripted.url)
    page.focus("#message")
    page.keyboard.type("One")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    expect(page.locator(".turn.assistant .text")).to_have_text("On and on")
    page.keyboard.type("next")  # the composer stays usable, and Enter keeps its words for later
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert tab.finish() == "On and on"
    assert tab.note().startswith("stopped")
    assert page.input_value("#message") == "next"
    assert scripted.said() == [("user", "One\ntwo")]
    assert page.evaluate("document.activeElement.id") == "message"


def test_refused_turn_comes_back_to_the_composer(tab: Tab, scripted: Scripted) -> None:
    message = "This model's maximum context length is 8 tokens; shorten the messages."
    scripted.reply = lambda connection, event: say(
        connection, "error", error={"message": message, "event_id": event["event_id"]}
    )
    page = tab.open(scripted.url)
    tab.ask("Far too long")
    expect(page.locator("#notice .sentence")).to_have_text(message)
    assert page.input_value("#message") == "Far too long"
    assert page.locator(".turn").count() == 0


def test_long_errors_leave_the_composer_in_sight(chromium: Browser, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: say(
        connection, "error", error={"message": "It broke, " + "and broke, " * 5_000, "event_id": event["event_id"]}
    )
    context = chromium.new_context(viewport={"width": 320, "height": 640})
    tab = Tab.of(context.new_page())
    page = tab.open(scripted.url)
    tab.ask("Hi")
    expect(page.locator("#notice .sentence")).to_contain_text("It broke")
    for seen in ("#message", "#send", "#notice [data-action=dismiss]"):
        expect(page.locator(seen)).to_be_in_viewport(ratio=1)
    assert len(page.inner_text("#notice .sentence")) <= 500
    context.close()


@pytest.mark.parametrize(("motion", "animation"), [("no-preference", "chat-pulse"), ("reduce", "none")])
def test_the_end_of_a_running_reply_moves_where_that_is_wanted(
    chromium: Browser, scripted: Scripted, motion: Any, animation: str
) -> None:
    scripted.reply = lambda connection, event: stream(connection, "Half a")
    context = chromium.new_context(reduced_motion=motion)
    tab = Tab.of(context.new_page())
    page = tab.open(scripted.url)
    tab.ask("Hi")
    end = page.locator(".turn.assistant .text > p")
    expect(end).to_have_text("Half a")
    assert end.evaluate("p => getComputedStyle(p, '::after').animationName") == animation
    context.close()


def test_lost_connection_loses_nothing(tab: Tab, scripted: Scripted) -> None:
    def break_off(connection: ServerConnection, event: Event) -> None:
        stream(connection, "Half a")
        connection.close(1012)

    scripted.reply = lambda connection, event: complete(connection, "Hello")
    page = tab.open(scripted.url)
    tab.ask("Hi")
    tab.finish()
    scripted.reply = break_off
    tab.ask("More")
    assert tab.finish() == "Half a"
    expect(page.locator("#notice .sentence")).to_contain_text("what had arrived is kept")
    expect(page.locator("#chip")).to_have_text("scripted")  # connected again, by itself

    scripted.reply = lambda connection, event: complete(connection, "Half a loaf")
    page.click("#notice [data-action=retry]")
    expect(page.locator("#send")).to_be_visible()
    expect(page.locator(".turn.assistant .text").last).to_have_text("Half a loaf")
    assert scripted.said() == [("user", "Hi"), ("assistant", "Hello"), ("user", "More")]
    tab.ask("Thanks")
    tab.finish()
    assert scripted.said()[-1] == ("user", "Thanks")

    page.click("#new")
    expect(page.locator("#empty")).to_be_visible()
    expect(page.locator("#chip")).to_have_text("scripted")
    tab.ask("Anew")
    tab.finish()
    assert scripted.said() == [("user", "Anew")]


def test_key_is_asked_for_and_used(tab: Tab, scripted: Scripted) -> None:
    scripted.key = "sesame"
    page = tab.open(scripted.url)
    expect(page.locator("#trouble .sentence")).to_have_text(
        "This server asks for an API key; enter it in the settings."
    )
    page.click("#trouble [data-action=key]")
    expect(page.locator("#key")).to_be_focused()
    page.keyboard.type("tahini")
    page.keyboard.press("Enter")
    expect(page.locator("#trouble .sentence")).to_contain_text("refused this API key")
    page.fill("#key", "sesame")
    page.press("#key", "Enter")
    expect(page.locator("#chip")).to_have_text("scripted")
    expect(page.locator("#trouble")).to_be_hidden()
    assert not any("sesame" in address for address in tab.addresses)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 768, 1920])
def test_fits_every_screen(chromium: Browser, scripted: Scripted, width: int, scheme: Any) -> None:
    scripted.reply = lambda connection, event: complete(connection, "word " * 40, "unbroken" * 60)
    context = chromium.new_context(viewport={"width": width, "height": 700}, color_scheme=scheme)
    tab = Tab(context.new_page())
    page = tab.open(scripted.url)
    tab.ask("wide" * 100)
    tab.finish()
    overflow = "[...document.querySelectorAll('html, #log')].map(box => box.scrollWidth - box.clientWidth)"
    assert page.evaluate(overflow) == [0, 0]
    expect(page.locator("#send")).to_be_in_viewport(ratio=1)
    if page.locator("#settings").is_hidden():
        page.click("#settings-toggle")
    expect(page.locator("#key")).to_be_visible()
    assert page.evaluate(overflow) == [0, 0]
    unnamed = """[...document.querySelectorAll('button, input, textarea')]
        .filter(control => !(control.labels?.[0]?.textContent ?? control.textContent).trim())
        .map(control => control.id)"""
    assert page.evaluate(unnamed) == []
    context.close()
