"""The page in Chromium, against the real server and the default model."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest
from browser import REPLY_MS, Tab
from playwright.sync_api import Page, expect
from serve_command import serving

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]


def set_up(tab: Tab, url: str, *, tokens: int) -> Page:
    page = tab.open(url)
    tab.settings()
    page.fill("#seed", "7")
    page.fill("#max-tokens", str(tokens))
    expect(page.locator("#chip")).to_have_attribute("data-state", "open")
    return page


def test_a_real_reply_streams_in(tab: Tab, server: str) -> None:
    with urlopen(server) as answer:
        policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    page = set_up(tab, server, tokens=32)
    page.evaluate("""() => {
        window.growth = [];
        const last = () => [...document.querySelectorAll('.turn.assistant .text')].at(-1)?.textContent.length ?? 0;
        const log = document.querySelector('#log');
        new MutationObserver(() => growth.push(last())).observe(log, {subtree: true, childList: true});
    }""")
    tab.ask("Tell me about rivers.")
    text = tab.finish()
    lengths = sorted(set(page.evaluate("growth")) - {0})
    assert len(lengths) >= 2
    assert lengths[-1] == len(text)
    for figure in ("ttft", "tpot", "rate", "per-step", "cache-hit", "tokens"):
        assert page.text_content(f"#{figure}") != "–", figure
    assert int(page.text_content("#tokens") or "") <= 32
    assert "seed 7" in tab.note()
    assert all(address.startswith(server) for address in tab.addresses)
    assert tab.complaints == []


def test_stop_ends_a_real_reply(tab: Tab, server: str) -> None:
    page = set_up(tab, server, tokens=1500)
    page.fill("#temperature", "0")
    tab.ask("Write a very long story about a lighthouse keeper, with many chapters.")
    expect(page.locator(".turn.assistant .text")).not_to_be_empty(timeout=REPLY_MS)
    page.click("#stop")
    text = tab.finish()
    assert text
    assert tab.note().startswith("stopped")

    page.fill("#max-tokens", "4")
    tab.ask("Thank you.")  # the session goes on, and of the stopped reply nothing more comes before this one's
    assert tab.finish()
    assert page.locator(".turn").count() == 4
    assert page.locator(".turn.assistant .text").first.text_content() == text
    assert tab.complaints == []


def test_the_switch_changes_the_speed_and_not_the_text(tab: Tab, server: str) -> None:
    page = set_up(tab, server, tokens=48)
    question = "Say this twice: the quick brown fox jumps over the lazy dog, and the lazy dog does not mind."
    tab.ask(question)
    fast = tab.finish()
    assert "speculation on" in tab.note()
    page.click("#new")
    page.uncheck("#speculation")
    tab.ask(question)
    plain = tab.finish()
    assert "speculation off" in tab.note()
    assert page.text_content("#per-step") == "1.00"
    assert page.text_content("#acceptance") == "–"
    assert plain == fast
    assert tab.complaints == []


def test_a_reload_changes_nothing_of_a_real_reply(tab: Tab, server: str) -> None:
    page = set_up(tab, server, tokens=160)
    question = "Tell me about rivers, and then about roads."
    tab.ask(question)
    expect(page.locator(".turn.assistant .text")).not_to_be_empty(timeout=REPLY_MS)
    page.reload()
    over = page.locator(".turn.assistant:is([data-state=done], [data-state=cut])")
    expect(over).to_have_count(1, timeout=REPLY_MS)
    resumed = tab.finish()
    page.click("#new")
    tab.ask(question)
    assert tab.finish() == resumed
    assert tab.complaints == []


def test_a_key_that_is_no_subprotocol_opens_the_server(tab: Tab, default_model: Path) -> None:
    with serving(default_model, "--context-length", "512", "--api-key", "q4/Zk+8w==") as (_, url):
        page = tab.open(f"{url}/")
        page.click("#trouble [data-action=key]")
        page.fill("#key", "q4/Zk+8w=")
        page.click("#key-form button")
        expect(page.locator("#trouble .sentence")).to_contain_text("refused this API key")
        page.fill("#key", "q4/Zk+8w==")
        page.click("#key-form button")
        expect(page.locator("#chip")).to_have_attribute("data-state", "open")
        page.fill("#max-tokens", "4")
        tab.ask("Hi")
        assert tab.finish()
