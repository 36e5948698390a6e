"""axe-core finds nothing, in any view, scheme or width; a picture of each is kept, for what no rule sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
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

Scheme = Literal["light", "dark"]
Keep = Callable[[Page, str], Path]

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
def test_chat(chromium: Browser, scripted: Scripted, keep: Keep, width: int, scheme: Scheme) -> None:
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
    keep(page, f"views/chat-{scheme}-{width}")
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
def test_other_views(chromium: Browser, scripted: Scripted, keep: Keep, view: str, scheme: Scheme) -> None:
    page = opened(chromium, scripted, 1400, scheme)
    page.click(f"header nav a[href='#/{view}']")
    expect(page.locator("main:visible")).to_have_count(1)
    assert violations(page) == []
    keep(page, f"views/{view}-{scheme}-1400")
    page.set_viewport_size({"width": 360, "height": 740})
    assert violations(page) == [], "narrow"
    keep(page, f"views/{view}-{scheme}-360")
    page.context.close()


def opened(chromium: Browser, scripted: Scripted, width: int, scheme: Scheme) -> Page:
    page = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme).new_page()
    page.goto(scripted.url)
    expect(page.locator("#chip")).to_have_attribute("data-state", "open")
    return page
