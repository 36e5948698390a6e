"""The voice demo in Chromium: typed transcripts against a scripted server and the real one, and the microphone."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from axe import needs_axe, violations
from browser import REPLY_MS, Tab
from playwright.sync_api import expect
from scripted_page import Event, Scripted
from voice_page import SOON_MS, Ears, append, begin, finish, opened, press, say_own, spoken, state
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

REPLY = "🌙 The moon is round and bright. It follows the Earth around the sun, night after night."
CLAUSES = ("🌙 The moon is round and bright.", " It follows the Earth around the sun,")
HEARD = "🌙 The moon is round and bright. It follows"  # nine words, after which the transcript breaks in


CLEAR = {"type": "input_text.clear"}
COMMIT = {"type": "input_text.commit"}
CANCEL = {"type": "response.cancel"}


def test_breaking_in_cuts_the_reply_to_what_was_heard(tab: Tab, scripted: Scripted) -> None:
    replies = iter(("reply_1", "reply_2"))

    def reply(connection: ServerConnection, event: Event) -> None:
        item = next(replies)
        if item == "reply_1":
            begin(connection, item, REPLY, *CLAUSES)
        else:
            finish(connection, item, "Far away.")

    scripted.reply, scripted.answer = reply, Ears()
    page = opened(tab, scripted.url)
    press(page, "Breaking in")
    state(page, "Speaking")
    expect(page.locator("#voice-reply .voice-ahead")).not_to_be_empty()
    expect(page.locator("#voice-reply del")).to_have_text(REPLY[len(HEARD) :], timeout=SOON_MS)
    expect(page.locator("#voice-reply .voice-heard")).to_have_text(HEARD)
    state(page, "Ready")

    *events, second = spoken(scripted)
    create = {"type": "response.create", "response": second["response"]}
    assert second["response"]["voice"] == {"clauses": True}
    assert second["response"]["temperature"] == 0.2
    assert [event | {"response": create["response"]} if "response" in event else event for event in events] == [
        append("tell"),
        append(" me"),
        CLEAR,
        append("Tell me about"),
        append(" the moon"),
        append(", please."),
        COMMIT,
        create,
        CANCEL,
        append("no"),
        {"type": "conversation.item.truncate", "item_id": "reply_1", "content_index": 0, "x_text_end": len(HEARD)},
        CLEAR,
        append("No wait"),
        CLEAR,
        append("No, wait. Only"),
        append(" how far"),
        append(" away it is."),
        COMMIT,
    ]
    lines = page.locator(".voice-line")
    expect(lines).to_have_text(
        [
            "You Tell me about the moon, please.",
            f"Reply {HEARD} … cut where you broke in",
            "You No, wait. Only how far away it is.",
            "Reply Far away.",
        ]
    )
    expect(page.locator("#voice-comparison")).to_contain_text("32 of 44 prompt tokens were already computed")
    expect(page.locator(".voice-before")).to_contain_text(f"keeps {len(HEARD)} of its {len(REPLY)} characters")
    assert tab.complaints == []


def test_words_that_are_computed_are_marked(tab: Tab, scripted: Scripted) -> None:
    scripted.answer = Ears()
    page = opened(tab, scripted.url)
    press(page, "A pause to think")
    expect(page.locator("#voice-words .voice-ready")).to_have_text("I have rice, two eggs and an", timeout=SOON_MS)
    expect(page.locator("#voice-words")).to_have_text("I have rice, two eggs and an onion")
    press(page, "Forget the words")
    state(page, "Ready")
    assert spoken(scripted)[-1] == CLEAR


def test_a_lost_connection_keeps_what_was_heard(tab: Tab, scripted: Scripted) -> None:
    scripted.answer = Ears()
    scripted.reply = lambda connection, event: begin(connection, "reply_1", REPLY, *CLAUSES)
    page = opened(tab, scripted.url)
    heard = page.locator("#voice-reply .voice-heard")
    say_own(page, "Tell me about the moon.")
    expect(heard).to_contain_text("bright.", timeout=SOON_MS)
    scripted.drop(1012)
    expect(page.locator(".voice .bar").last).to_contain_text("lost during the reply; what you had heard of it is kept")
    state(page, "Ready")
    kept = page.locator(".voice-line.voice-assistant > span").text_content() or ""
    assert REPLY.startswith(kept)

    scripted.reply = lambda connection, event: finish(connection, "reply_2", "Well.")
    say_own(page, "Go on.")
    expect(page.locator(".voice-line")).to_have_count(4, timeout=SOON_MS)
    first, second, *_ = spoken(scripted)
    assert first["item"]["id"] == "user_1"
    assert second["item"] | {"content": None} == {
        "type": "message",
        "role": "assistant",
        "id": "reply_1",
        "content": None,
    }
    assert second["item"]["content"] == [{"type": "output_text", "text": kept}]


def test_without_its_key_the_page_says_what_to_do(tab: Tab, scripted: Scripted) -> None:
    scripted.key = "secret"
    page = opened(tab, scripted.url)
    bar = page.locator(".voice .bar")
    expect(bar).to_contain_text("This server asks for an API key; enter it in the settings.")
    expect(bar.locator("a")).to_have_attribute("href", "#/chat")


def test_leaving_the_view_ends_the_sound_and_keeps_the_conversation(tab: Tab, scripted: Scripted) -> None:
    scripted.answer = Ears()
    scripted.reply = lambda connection, event: begin(connection, "reply_1", REPLY, *CLAUSES)
    page = opened(tab, scripted.url)
    say_own(page, "Tell me about the moon.")
    expect(page.locator("#voice-reply .voice-heard")).to_contain_text("bright.", timeout=SOON_MS)
    page.click("header nav a[href='#/chat']")
    expect(page.locator("main.voice")).to_be_hidden()
    page.click("header nav a[href='#/voice']")
    state(page, "Ready")
    expect(page.locator(".voice-line")).to_have_count(2)
    expect(page.locator(".voice-cut")).to_be_visible()
    assert CANCEL in spoken(scripted)


RECOGNISER = """
window.heard = [];
window.webkitSpeechRecognition = class {
  start() { heard.push('start'); window.recogniser = this; }
  stop() { heard.push('stop'); this.tell('How far is the moon?', true); this.onend(); }
  abort() { heard.push('abort'); }
  tell(transcript, isFinal) { this.onresult({results: [Object.assign([{transcript}], {isFinal})]}); }
};
delete window.SpeechRecognition;
"""


def test_the_microphone_is_used_while_the_button_is_held(tab: Tab, scripted: Scripted) -> None:
    scripted.answer = Ears()
    scripted.reply = lambda connection, event: finish(connection, "reply_1", "Far.")
    tab.page.add_init_script(RECOGNISER)
    page = opened(tab, scripted.url)
    assert page.evaluate("heard") == []  # nothing before a press
    talk = page.locator(".voice-hold")
    expect(talk).to_be_in_viewport()
    talk.focus()
    page.keyboard.down(" ")
    state(page, "Listening")
    page.evaluate("recogniser.tell('How far', false)")
    expect(page.locator("#voice-words")).to_have_text("How far")
    page.keyboard.up(" ")
    expect(page.locator(".voice-line")).to_have_text(["You How far is the moon?", "Reply Far."])
    assert page.evaluate("heard") == ["start", "stop"]

    talk.hover()
    place = talk.bounding_box()
    page.mouse.down()
    expect(talk).to_have_attribute("aria-pressed", "true")
    page.evaluate("recogniser.onerror({error: 'not-allowed'})")
    expect(page.locator(".voice .bar")).to_contain_text("allow it beside the address")
    assert talk.bounding_box() == place, "it stays under the finger"
    page.evaluate("recogniser.onend()")
    page.mouse.up()
    state(page, "Ready")
    assert tab.complaints == []


@needs_axe
def test_a_turn_is_accessible_on_a_narrow_screen(tab: Tab, scripted: Scripted) -> None:
    scripted.answer = Ears()
    scripted.reply = lambda connection, event: begin(connection, "reply_1", REPLY, *CLAUSES)
    page = opened(tab, scripted.url)
    page.set_viewport_size({"width": 320, "height": 700})
    say_own(page, "Tell me.")
    state(page, "Speaking")
    press(page, "Break in")
    state(page, "Ready")
    assert violations(page) == []
    assert page.evaluate("document.querySelector('.view:not([hidden])').scrollWidth") <= 320


def test_a_turn_and_breaking_in_with_the_real_server(tab: Tab, server: str) -> None:
    received: list[dict[str, Any]] = []
    tab.page.on("websocket", lambda socket: socket.on("framereceived", lambda data: received.append(json.loads(data))))
    page = opened(tab, server)
    say_own(page, "Tell me a very long story about a lighthouse keeper and the sea, with many chapters.")
    expect(page.locator("#voice-words .voice-ready")).not_to_be_empty(timeout=REPLY_MS)
    expect(page.locator("#voice-reply .voice-heard")).to_have_text(re.compile(r"\S+ \S+ \S+"), timeout=REPLY_MS)
    press(page, "Break in")
    expect(page.locator(".voice-cut")).to_be_visible(timeout=REPLY_MS)
    kept = page.locator(".voice-line.voice-assistant > span").text_content() or ""
    say_own(page, "Thank you. Say goodbye.")
    expect(page.locator(".voice-line")).to_have_count(4, timeout=REPLY_MS)
    comparison = re.compile(r"Text came .* after your turn had ended; \d+ of \d+")
    expect(page.locator("#voice-comparison")).to_contain_text(comparison)

    (cut,) = [event for event in received if event["type"] == "conversation.item.truncated"]
    assert cut["x_text_end"] == len(kept)
    assert [event for event in received if event["type"] == "error"] == []
    assert tab.complaints == []
