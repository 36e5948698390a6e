"""A reply's Markdown in Chromium, under the policies that the server sends."""

from __future__ import annotations

import pytest
from axe import needs_axe, violations
from browser import Tab
from playwright.sync_api import expect
from scripted_page import Event, Scripted, complete
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

TEXT = """# Title

Some **bold** and a [link](https://e.example/) and [one for later][later].

- [x] done
- [ ] to do

| a | b |
|---|--:|
| 1 | 2 |

```python
def answer(): return "a line that is so long that it has to scroll inside of itself, even on a rather wide desk", 42
```

> \u0645\u0631\u062d\u0628\u0627 \U0001f469\u200d\U0001f469\u200d\U0001f467

<img src=x onerror="document.title='broken'"> [x](javascript:alert(1)) ![cat](https://e.example/cat.png)

[later]: https://e.example/later
"""


def tokens(connection: ServerConnection, event: Event) -> None:
    complete(connection, *(TEXT[start : start + 3] for start in range(0, len(TEXT), 3)))


def test_a_reply_is_shown_as_markdown(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = tokens
    page = tab.open(scripted.url)
    tab.ask("Show it")
    tab.finish()
    text = page.locator(".turn.assistant .text")
    expect(text.locator("h3")).to_have_text("Title")
    expect(text.locator("strong")).to_have_text("bold")
    expect(text.locator("td")).to_have_text(["1", "2"])
    expect(text.locator("blockquote")).to_have_attribute("dir", "rtl")
    expect(text.get_by_role("checkbox", name="Done")).to_be_disabled()
    expect(text.locator(".hljs-number")).to_have_text("42")
    expect(text.locator("a")).to_have_count(3)  # one is defined later
    assert text.locator("a").evaluate_all("links => links.map(({href}) => href)") == [
        "https://e.example/",
        "https://e.example/later",
        "https://e.example/cat.png",
    ]
    assert text.locator("img, script").count() == 0
    assert page.title() != "broken"
    assert tab.complaints == []


@needs_axe
def test_axe_finds_nothing_in_a_reply(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = tokens
    page = tab.open(scripted.url)
    tab.ask("Show it")
    tab.finish()
    assert violations(page) == []


def test_wide_code_is_reached_and_copied_by_keyboard(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = tokens
    page = tab.open(scripted.url)
    page.context.grant_permissions(["clipboard-write"])
    page.click("#steps-toggle")  # on a narrow screen they would cover the conversation
    tab.ask("Show it")
    tab.finish()
    page.get_by_role("button", name="Copy code").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".md-copied")).to_have_text("Copied")
    page.set_viewport_size({"width": 320, "height": 700})
    code = page.locator(".md-code pre")
    expect(code).to_have_attribute("tabindex", "0")
    page.keyboard.press("Tab")
    expect(code).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    page.focus("#message")
    page.keyboard.press("Control+V")  # the page itself may not read the clipboard
    assert page.input_value("#message").startswith("def answer()")
