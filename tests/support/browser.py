"""Chromium and its tabs, as the tests of the page use them."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from playwright.sync_api import Page, expect

_CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
# No sandbox because tests may run as root; the rest so that the browser opens no connection of its own.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
REPLY_MS = 120_000  # for one reply of the real model on a busy machine
LATE_S = 20.0  # for anything that takes a moment, on a busy machine


def chromium_path() -> str | None:
    """Of the first Chromium that is installed; None where none is."""
    return next(filter(None, map(shutil.which, _CHROMIUM_NAMES)), None)


@dataclass
class Tab:
    """One browser tab, with what its console complained about and the addresses it loaded from."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, page: Page) -> Tab:
        tab = cls(page)
        # Chromium reports a violated content policy as a console error too.
        page.on("console", lambda line: tab.complaints.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        page.on("request", lambda request: tab.addresses.add(request.url))
        return tab

    def open(self, url: str) -> Page:
        self.page.goto(url)
        return self.page

    def settings(self) -> None:
        """Opens the settings where they are not."""
        if self.page.locator("#settings").is_hidden():
            self.page.click("#settings-toggle")

    def ask(self, text: str) -> None:
        self.page.fill("#message", text)
        self.page.press("#message", "Enter")

    def finish(self) -> str:
        """Waits for the end of the running reply and returns its text."""
        expect(self.page.locator("#send")).to_be_visible(timeout=REPLY_MS)
        text = self.page.locator(".turn.assistant .text").last
        expect(text).not_to_have_attribute("data-drawing", "")  # its last words may be drawn after its buttons
        return text.text_content() or ""

    def note(self) -> str:
        return self.page.locator(".turn.assistant .note").last.text_content() or ""

    def until(self, holds: Callable[[], bool], failure: str) -> None:
        """Waits for what the page itself cannot be asked about; fails with the sentence where it does not come."""
        deadline = time.monotonic() + LATE_S
        while not holds():
            assert time.monotonic() < deadline, failure
            self.page.wait_for_timeout(20)  # not a sleep: what the browser tells arrives meanwhile


def frames(page: Page, count: int = 4) -> None:
    """Lets so many frames pass: a view draws in every other one what has reached it."""
    page.evaluate(
        "async count => { while (count-- > 0) await new Promise(requestAnimationFrame); }",
        count,
    )
