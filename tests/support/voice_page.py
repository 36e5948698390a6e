"""The voice view in Chromium: what a scripted server does for it, and what a person presses there."""

from __future__ import annotations

import json

from browser import Tab
from playwright.sync_api import Page, expect
from scripted_page import Event, Scripted, say
from websockets.sync.server import ServerConnection

SOON_MS = 20_000  # for what a transcript takes on a busy machine


class Ears:
    """The server's side of text that is still written."""

    def __init__(self) -> None:
        self.pending = ""
        self.items = 0

    def __call__(self, connection: ServerConnection, event: Event) -> None:
        match event["type"]:
            case "input_text.append":
                self.pending += event["text"]
                end = len(self.pending)
                say(
                    connection,
                    "x_input_text.prefilled",
                    tokens=end + 9,
                    stable_tokens=end,
                    cached_tokens=end,
                    text_end=end,
                )
            case "input_text.clear":
                self.pending = ""
                say(connection, "input_text.cleared")
            case "input_text.commit":
                self.pending = ""
                self.items += 1
                say(connection, "input_text.committed", item_id=f"user_{self.items}")


def begin(connection: ServerConnection, item: str, text: str, *clauses: str) -> None:
    """A reply with its first clauses."""
    say(connection, "response.created", response={"id": "r"})
    say(connection, "response.output_item.added", item={"id": item, "role": "assistant"})
    say(connection, "response.output_text.delta", response_id="r", item_id=item, delta=text, x_seq=1)
    end = 0
    for clause in clauses:
        end += len(clause)
        say(connection, "x_response.clause", response_id="r", item_id=item, end=end)


def finish(connection: ServerConnection, item: str, text: str) -> None:
    begin(connection, item, text, text)
    usage = {"output_tokens": 3, "input_tokens": 44, "input_token_details": {"cached_tokens": 32}}
    say(connection, "response.done", response={"id": "r", "status": "completed", "usage": usage})


def opened(tab: Tab, url: str) -> Page:
    """Replies are read along, fast, on machines with a voice too."""
    options = json.dumps(json.dumps({"aloud": False, "pace": 600}))
    tab.page.add_init_script(f"localStorage.setItem('paceline.voice', {options})")
    return tab.open(f"{url}#/voice")


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def state(page: Page, name: str) -> None:
    expect(page.locator("#voice-state")).to_have_text(name, timeout=SOON_MS)


def say_own(page: Page, words: str) -> None:
    page.fill("#voice-own", words)
    press(page, "Say it")


def spoken(scripted: Scripted, session: int = -1) -> list[Event]:
    """What the view sent in one of its sessions, oldest first, without ids and settings."""
    sessions = [
        [event for event in events if event.get("event_id", "").startswith("voice_")] for events in scripted.sessions
    ]
    events = [events for events in sessions if events][session]
    return [
        {key: value for key, value in event.items() if key != "event_id"}
        for event in events
        if event["type"] != "session.update"
    ]


def append(text: str) -> Event:
    return {"type": "input_text.append", "text": text}
