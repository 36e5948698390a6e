"""axe-core finds nothing, in any view, scheme or width."""

from __future__ import annotations

from typing import Literal

import pytest
from axe import needs_axe, violations
from browser import Tab
from playwright.sync_api import Browser, Page, expect
from scripted_page import Event, Scripted, complete, say
from traced_reply import traced_deltas
from websockets.sync.server import ServerConnection

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("chromium"),
    needs_axe,
]

MARKDOWN = """# A heading

Words, *more* and `code`.

- one
- two

```python
print(1)
```

| a | b |
|---|---|
| 1 | 2 |
"""


def traced(connection: ServerConnection, event: Event) -> None:
    say(connection, "response.created", response={"id": "r"})
    for delta in traced_deltas(150):
        say(connection, "response.output_text.delta", response_id="r", item_id="i", **delta)
    say(connection, "response.done", response={"id": "r", "status": "completed", "usage": {"output_tokens": 150}})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1400])
def test_chat(chromium: Browser, scripted: Scripted, width: int, scheme: Literal["light", "dark"]) -> None:
    page = opened(chromium, scripted, width, scheme)
    assert violations(page) == [], "nothing said yet"
    tab = Tab(page)
    scripted.reply = lambda connection, event: complete(connection, MARKDOWN)
    tab.ask("Hello")
    tab.finish()
    scripted.reply = traced
    tab.ask("More")
    tab.finish()
    assert violations(page) == [], "a conversation"
    if page.locator("#settings").is_hidden():
        page.click("#settings-toggle")
    page.click("#settings summary")
    page.fill("#temperature", "hot")
    page.focus("#seed")
    assert violations(page) == [], "settings"
    page.click("#list-toggle")
    page.locator(".chat-more").first.click()
    assert violations(page) == [], "conversations"
    page.click("#list-toggle")
    expect(page.locator("#conversations")).to_be_hidden()
    if page.locator("#steps").is_hidden():
        page.click("#steps-toggle")
    expect(page.locator(".spec")).to_be_visible()
    assert violations(page) == [], "steps"
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", ["race", "dashboard", "voice"])
def test_other_views(chromium: Browser, scripted: Scripted, view: str, scheme: Literal["light", "dark"]) -> None:
    page = opened(chromium, scripted, 1400, scheme)
    page.click(f"header nav a[href='#/{view}']")
    expect(page.locator("main:visible")).to_have_count(1)
    assert violations(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert violations(page) == [], "narrow"
    page.context.close()


def opened(chromium: Browser, scripted: Scripted, width: int, scheme: Literal["light", "dark"]) -> Page:
    page = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
    page.goto(scripted.url)
    expect(page.locator("#chip")).to_have_attribute("data-state", "open")
    return page
