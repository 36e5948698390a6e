"""What the speculation view draws is what the server told of the same reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from browser import Tab
from playwright.sync_api import Page, WebSocket, expect
from scripted_page import Event, Scripted, say
from traced_reply import traced_deltas
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

Step = dict[str, Any]
_DRAWN = """tree => [...tree.querySelectorAll('[data-node]')].map(node =>
    [node.dataset.node, node.dataset.accepted === 'true', node.dataset.source])"""


def listen(page: Page) -> list[Step]:
    """The steps of each delta that comes over a socket of the page, as they come."""
    steps: list[Step] = []

    def received(frame: str | bytes) -> None:
        event = json.loads(frame)
        if event["type"] == "response.output_text.delta":
            steps.extend(event["x_spec"].get("steps", ()))

    def opened(socket: WebSocket) -> None:
        socket.on("framereceived", received)

    page.on("websocket", opened)
    return steps


def drawn_as_told(page: Page, step: Step, index: int) -> None:
    tree = step["tree"]
    drawing = page.locator(f".spec-tree[data-step='{index}']")
    expect(drawing).to_have_count(1)
    told = [
        [str(node), node in tree["path"], source] for node, source in enumerate(tree["sources"])
    ]  # and behind them the model's own token
    assert drawing.evaluate(_DRAWN) == [*told, ["own", True, ""]]
    assert len(tree["sources"]) == step["nodes"]
    assert len(tree["path"]) - 1 == step["accepted"]
    brought = [token["text"] for token in step["tokens"]]
    assert [tree["texts"][node] for node in tree["path"][1:]] == brought[:-1]


def walked_back(page: Page, steps: list[Step]) -> None:
    """Every step of the reply, from the newest to the first, is drawn as the server told it."""
    for index in reversed(range(len(steps))):
        drawn_as_told(page, steps[index], index)
        page.click("button[aria-label='Step before']")


def test_every_tree_is_drawn_as_it_was_told(tab: Tab, scripted: Scripted) -> None:
    def reply(connection: ServerConnection, event: Event) -> None:
        say(connection, "response.created", response={"id": "r"})
        for delta in traced_deltas(30):
            say(connection, "response.output_text.delta", response_id="r", item_id="i", **delta)
        say(connection, "response.done", response={"id": "r", "status": "completed", "usage": {"output_tokens": 30}})

    scripted.reply = reply
    steps = listen(tab.page)
    page = tab.open(scripted.url)
    tab.ask("Go on")
    tab.finish()
    walked_back(page, steps)
    assert sum(step["emitted"] for step in steps) == 30
    assert tab.complaints == []


def test_a_real_replys_trees_are_drawn_as_they_were_told(tab: Tab, server: str) -> None:
    steps = listen(tab.page)
    page = tab.open(server)
    page.set_viewport_size({"width": 1400, "height": 900})
    page.click("#settings-toggle")
    page.fill("#max-tokens", "24")
    page.fill("#temperature", "0")
    tab.ask("Say this twice: the quick brown fox jumps over the lazy dog.")
    tab.finish()
    assert page.text_content("#tokens") == str(sum(step["emitted"] for step in steps))
    assert max(step["nodes"] for step in steps) > 1
    page.click("#settings-toggle")
    walked_back(page, steps)
    assert tab.complaints == []
