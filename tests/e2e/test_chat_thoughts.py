"""What a model that thinks shows in the chat, in Chromium: of a scripted server, and of a real one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from axe import needs_axe, violations
from browser import Tab
from playwright.sync_api import expect
from scripted_page import Event, Scripted, say, stream
from serve_command import serving
from speaking_model import make_speaking_folder
from templates import TEMPLATES
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

HOSTILE = "<img src=x onerror=alert(1)> **no** <script>alert(1)</script>"
BIASED = """{
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (text) {
        const event = JSON.parse(text);
        if (event.type === "response.create") event.response.logit_bias = BIAS;
        send.call(this, JSON.stringify(event));
    };
}"""


def think(connection: ServerConnection, event: Event) -> None:
    say(connection, "response.created", response={"id": "r"})
    counts = {"drafted": 0, "accepted": 0, "emitted": 1}
    for place, piece in enumerate(("\nLet me see.\n\n", HOSTILE), 1):
        thought = {"response_id": "r", "delta": piece, "x_seq": place, "x_spec": counts}
        say(connection, "x_response.reasoning.delta", **thought)


def answer(connection: ServerConnection) -> None:
    stream(connection, "The", " Loire", after=2)
    say(connection, "response.done", response={"id": "r", "status": "completed", "usage": {"output_tokens": 6}})


def test_thoughts_are_seen_until_the_answer_begins(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = think
    page = tab.open(scripted.url)
    tab.ask("A river")
    thoughts = page.locator(".turn.assistant details.thoughts")
    expect(thoughts.locator("summary")).to_have_text("Thinking")
    expect(thoughts.locator("p")).to_have_text(["Let me see.", "", HOSTILE])
    expect(page.locator("#tokens")).to_have_text("2")
    answer(scripted.connections[-1])
    tab.finish()
    expect(page.locator(".turn.assistant .text")).to_have_text("The Loire")
    expect(thoughts.locator("summary")).to_have_text("Thoughts")
    expect(thoughts.locator("p").first).to_be_hidden()
    expect(page.locator("#spoken")).to_contain_text("The Loire")
    assert "Let me see" not in (page.locator("#spoken").text_content() or "")

    page.reload()
    expect(page.locator(".turn.assistant .text")).to_have_text("The Loire")
    page.focus(".turn.assistant summary")
    page.keyboard.press("Enter")
    expect(thoughts.locator("p").last).to_be_visible()
    page.click("#list-toggle")
    with page.expect_download() as download:
        page.get_by_role("button", name="Markdown").click()
    assert f"> {HOSTILE}\n\nThe Loire" in Path(download.value.path()).read_text()
    assert tab.complaints == []


@needs_axe
def test_axe_finds_nothing_in_thoughts(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = think
    page = tab.open(scripted.url)
    tab.ask("A river")
    expect(page.locator(".turn.assistant details.thoughts p")).to_have_count(3)
    assert violations(page) == []


def test_a_real_model_thinks(tab: Tab, tmp_path: Path) -> None:
    scripts = make_speaking_folder(tmp_path / "model", TEMPLATES["qwen3"])
    bias = json.dumps({scripts.openings["thoughts"]: 10})
    with serving(tmp_path / "model") as (_, url):
        tab.page.add_init_script(BIASED.replace("BIAS", bias))
        page = tab.open(f"{url}/")
        tab.settings()
        page.fill("#temperature", "0")
        tab.ask("A river")
        tab.finish()
        expect(page.locator(".turn.assistant .text")).to_have_text("The Loire.")
        page.click(".turn.assistant summary")
        thoughts = page.locator(".turn.assistant details.thoughts p")
        expect(thoughts).to_have_text("She asks for a river. The Loire is one; </thin, hm, is no end.")
        words = page.locator("#steps .spec-tokens")
        expect(words).to_contain_text("The Loire.")
        expect(words).not_to_contain_text("She")
        tab.ask("Another")  # the session goes on
        tab.finish()
        expect(page.locator(".turn.assistant .text").last).to_have_text("The Loire.")
        assert tab.complaints == []
