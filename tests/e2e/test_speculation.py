"""The speculation view in Chromium: what it draws is what the server told, for every step of a reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from axe import needs_axe, violations
from browser import Tab
from playwright.sync_api import Locator, expect
from scripted_page import Event, Scripted, say
from traced_reply import traced_deltas
from websockets.sync.server import ServerConnection

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

Json = dict[str, Any]
QUESTION = "Say this twice: the quick brown fox jumps over the lazy dog, and the lazy dog does not mind."
DRAWN = """tree => ({
    step: Number(tree.dataset.step),
    nodes: Object.fromEntries([...tree.querySelectorAll('[data-node]')].map(node => [node.dataset.node, {
        accepted: node.dataset.accepted === 'true',
        source: node.dataset.source,
        word: node.querySelector('.spec-word').textContent,
        note: node.querySelector('.spec-note').textContent,
    }])),
    parents: Object.fromEntries([...tree.querySelectorAll('.spec-link')].map(({dataset: {from, to}}) => [to, from])),
})"""
BLANKS = str.maketrans({"␣": " ", "⏎": "\n", "⇥": "\t", "␍": "\r"})
ROUNDED = 0.0051  # a probability is shown with two digits


@dataclass
class Told:
    """What the server tells a tab from now on: the figures of each delta with its text, and the usage of the reply."""

    tab: Tab
    deltas: list[Json] = field(default_factory=list)
    usage: Json | None = None

    def __post_init__(self) -> None:
        self.tab.page.on("websocket", lambda socket: socket.on("framereceived", self._received))

    def _received(self, frame: str | bytes) -> None:
        event = json.loads(frame)
        if event["type"] == "response.output_text.delta":
            self.deltas.append({**event["x_spec"], "delta": event["delta"]})
        elif event["type"] == "response.done":
            self.usage = event["response"]["usage"]

    def steps(self) -> list[Json]:
        """All of the reply, once it is over: the browser may show what it has before it tells us of it."""
        self.tab.until(lambda: self.usage is not None, "the browser showed the reply's end and did not tell of it")
        assert self.usage is not None
        steps = [step for delta in self.deltas for step in delta.get("steps", ())]
        assert sum(step["emitted"] for step in steps) == self.usage["output_tokens"]
        return steps


def show_steps(tab: Tab) -> None:
    if tab.page.locator("#steps").count() == 0:
        tab.page.click("#steps-toggle")
    expect(tab.page.locator(".spec")).to_be_visible()


def assert_drawn(tree: Locator, index: int, step: Json) -> None:
    """Every node on the page has the text, the parent, the drafter and the probabilities it was told with; those marked
    are the path, and behind it stands the model's own token, if the step had one."""
    drawn = tree.evaluate(DRAWN)
    assert drawn["step"] == index
    grown = step["tree"]
    nodes, parents = drawn["nodes"], drawn["parents"]
    own = nodes.pop("own", None)
    if own is None:
        assert step["emitted"] == step["accepted"], "a step without a token of the model's own was cut short"
        assert "own" not in parents
    else:
        assert_word(own["word"], step["tokens"][step["accepted"]]["text"])
        assert parents.pop("own") == str(grown["path"][-1])
    assert sorted(map(int, nodes)) == list(range(len(grown["texts"])))
    assert parents == {str(node): str(parent) for node, parent in enumerate(grown["parents"]) if parent >= 0}
    for name, node in nodes.items():
        place = int(name)
        assert_word(node["word"], grown["texts"][place])
        assert node["source"] == grown["sources"][place]
        assert node["accepted"] == (place in grown["path"])
        if place == 0:
            assert node["note"] == "pending"
        else:
            _, probabilities = node["note"].split()
            told = [grown["estimates"][place], grown["chances"][place]]
            assert [float(shown) for shown in probabilities.split("/")] == pytest.approx(told, abs=ROUNDED)


def assert_word(shown: str, text: str) -> None:
    """A node shows its token with marks for blanks, and long ones cut."""
    word = shown.translate(BLANKS)
    assert text.startswith(word[:-1]) if word.endswith("…") else word == text


def test_a_real_reply_is_drawn_as_the_server_told_it(tab: Tab, server: str) -> None:
    told = Told(tab)
    page = tab.open(server)
    tab.settings()
    page.fill("#seed", "7")
    page.fill("#max-tokens", "40")
    tab.settings()
    expect(page.locator("#chip")).to_have_attribute("data-state", "open")
    show_steps(tab)
    tab.ask(QUESTION)
    tab.finish()

    steps = told.steps()
    assert sum(step["accepted"] for step in steps) > 0, "nothing was guessed right; another question is needed"
    for index in range(len(steps) - 1, -1, -1):
        page.press(".spec-bars", "ArrowLeft" if index < len(steps) - 1 else "End")
        tree = page.locator(f".spec-tree[data-step='{index}']")
        expect(tree).to_have_count(1)
        assert_drawn(tree, index, steps[index])

    sums = {name: sum(step[name] for step in steps) for name in ("drafted", "accepted", "emitted")}
    verified = sum(step["emitted"] > step["accepted"] for step in steps)  # not one that was cut among its guesses
    shown = page.locator(".spec-figures dd").all_text_contents()
    assert float(shown[3]) == pytest.approx(sums["emitted"] / verified, abs=ROUNDED)
    assert float(shown[4].removesuffix(" %")) == pytest.approx(100 * sums["accepted"] / sums["drafted"], abs=0.51)
    tokens = page.locator(".spec-tokens [role=option]")
    tokens.last.scroll_into_view_if_needed()
    assert tokens.all_text_contents() == [part for delta in told.deltas for part in spans(delta)]
    counted = page.locator(".spec-legend li").all_text_contents()
    assert sum(int(count.split()[-2]) for count in counted) == sums["emitted"]
    assert tab.complaints == []


def spans(delta: Json) -> list[str]:
    parts, at = [], 0
    for size, _ in delta["spans"]:
        parts.append(delta["delta"][at : at + size])
        at += size
    return parts


def test_a_reply_without_speculation_says_so(tab: Tab, server: str) -> None:
    page = tab.open(server)
    tab.settings()
    page.uncheck("#speculation")
    page.fill("#max-tokens", "4")
    tab.settings()
    show_steps(tab)
    expect(page.locator(".spec-empty")).to_contain_text("Ask something")
    tab.ask("Hello")
    tab.finish()
    expect(page.locator(".spec-empty")).to_contain_text("Speculation is off")
    expect(page.locator(".spec-node")).to_have_count(2)  # the pending token and the model's own


def traced(tokens: int, nodes: int) -> Callable[[ServerConnection, Event], None]:
    """An answer of so many tokens, each step of which checks a tree of so many nodes."""

    def reply(connection: ServerConnection, event: Event) -> None:
        say(connection, "response.created", response={"id": "r"})
        for delta in traced_deltas(tokens, nodes=nodes):
            say(connection, "response.output_text.delta", response_id="r", item_id="i", **delta)
        usage = {"output_tokens": tokens}
        say(connection, "response.done", response={"id": "r", "status": "completed", "usage": usage})

    return reply


@pytest.mark.parametrize(("width", "height"), [(1600, 900), (1280, 800)])
def test_tree_strip_and_sentence_are_seen_at_once(tab: Tab, scripted: Scripted, width: int, height: int) -> None:
    scripted.reply = traced(400, nodes=16)
    tab.page.set_viewport_size({"width": width, "height": height})
    page = tab.open(scripted.url)
    expect(page.locator("#chip")).to_have_attribute("data-state", "open")
    tab.ask("Hello")
    tab.finish()
    for part in (".spec-box", ".spec-bars", ".spec-readout"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)
    fits = "box => box.scrollHeight <= box.clientHeight && box.scrollWidth <= box.clientWidth"
    assert page.locator(".spec-box").evaluate(fits), "all of the tree"
    page.hover("[data-node='3']")
    expect(page.locator(".spec-pointed")).to_contain_text("estimate .")
    page.click("text=Whole tree")
    assert not page.locator(".spec-box").evaluate(fits), "all of its figures instead"
    assert tab.complaints == []


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_that_can_be_opened_is_accessible(tab: Tab, scripted: Scripted, scheme: Literal["light", "dark"]) -> None:
    scripted.reply = traced(60, nodes=16)
    tab.page.emulate_media(color_scheme=scheme)
    page = tab.open(scripted.url)
    expect(page.locator("#chip")).to_have_attribute("data-state", "open")
    tab.ask("Hello")
    tab.finish()
    page.get_by_role("button", name="Best step").click()
    assert violations(page) == [], "the step that brought the most"
    page.click("text=How to read this")
    page.click("text=The same as a table")
    page.click("text=Whole tree")
    page.focus(".spec-tokens [tabindex='0']")
    expect(page.locator(".spec-card")).to_be_visible()
    assert violations(page) == [], "legend, table, figures of the tree and a token's card"
    page.set_viewport_size({"width": 360, "height": 740})
    assert violations(page) == [], "narrow"


def test_steps_from_before_a_reload_are_said_to_be_gone(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = traced(40, nodes=8)
    page = tab.open(scripted.url)
    expect(page.locator(".spec-empty")).to_contain_text("Ask something")
    tab.ask("Hello")
    tab.finish()
    expect(page.locator(".spec-empty")).to_have_count(0)
    page.reload()
    expect(page.locator(".turn.assistant")).to_have_count(1)
    expect(page.locator(".spec-empty")).to_contain_text(
        "before this page was loaded, or to another tab, are not kept; ask again"
    )
    tab.ask("Again")
    tab.finish()
    expect(page.locator(".spec-tree")).to_be_visible()
    assert tab.complaints == []


def test_long_replies_are_shown_without_growing(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = traced(6000, nodes=12)
    page = tab.open(scripted.url)
    expect(page.locator("#chip")).to_have_attribute("data-state", "open")
    show_steps(tab)
    tab.ask("Hello")
    tab.finish()
    page.locator(".spec-tokens").scroll_into_view_if_needed()
    expect(page.locator(".spec-part > p", has_text="came before")).to_be_visible()
    expect(page.locator(".spec-tokens [aria-selected=true]").last).to_be_visible()
    page.wait_for_function(
        "box => box.scrollHeight - box.scrollTop - box.clientHeight < 8",
        arg=page.locator(".spec-tokens").element_handle(),
    )
    kept = page.locator(".spec-tokens [role=option]").count()
    assert 2000 <= kept <= 2250
    assert page.locator(".spec *").count() < kept + 1000
    page.locator(".spec-tokens [role=option]").first.click()
    expect(page.locator(".spec-card")).to_contain_text("Its step is too long ago.")
    page.press(".spec-bars", "Home")
    expect(page.locator(".spec-tree")).to_have_count(1)
    assert tab.complaints == []
