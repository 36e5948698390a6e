"""The page in Chromium: against the real server, and against a scripted one that says what no real model would."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve
from websockets.typing import Subprotocol

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

WEB = Path(__file__).parents[2] / "web"
POLICY = (
    "default-src 'self'; connect-src 'self' ws: wss:; img-src 'self' data:; style-src 'self'; script-src 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
# No sandbox because tests may run as root; the rest so that the browser opens no connection of its own.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
REPLY_MS = 120_000  # for one reply of the real model on a busy machine

Event = dict[str, Any]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed; on Debian and Ubuntu: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


@dataclass
class Tab:
    """One browser tab, with what its console complained about and the addresses it loaded from."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    addresses: set[str] = field(default_factory=set)

    def open(self, url: str) -> Page:
        self.page.goto(url)
        return self.page

    def ask(self, text: str) -> None:
        self.page.fill("#message", text)
        self.page.press("#message", "Enter")

    def finish(self) -> str:
        """Waits for the end of the running reply and returns its text."""
        expect(self.page.locator("#send")).to_be_visible(timeout=REPLY_MS)
        return self.page.locator(".turn.assistant .text").last.text_content() or ""

    def note(self) -> str:
        return self.page.locator(".turn.assistant .note").last.text_content() or ""


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    tab = Tab(context.new_page())
    # Chromium reports a violated content policy as a console error too.
    tab.page.on("console", lambda line: tab.complaints.append(line.text) if line.type in ("error", "warning") else None)
    tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    tab.page.on("request", lambda request: tab.addresses.add(request.url))
    yield tab
    context.close()


# The scripted server


@dataclass
class Scripted:
    """Serves the page as the real server does; every response.create is answered by `reply`."""

    reply: Callable[[ServerConnection, Event], None] = lambda connection, event: None
    key: str = ""
    model: str = "scripted"
    sessions: list[list[Event]] = field(default_factory=list)  # what the page sent, by session
    url: str = ""

    def http(self, connection: ServerConnection, request: Request) -> Response | None:
        path = request.path.partition("?")[0]
        bearer = request.headers.get("authorization") == f"Bearer {self.key}"
        offered = f"openai-insecure-api-key.{self.key}" in request.headers.get("sec-websocket-protocol", "")
        if path.startswith("/v1/") and self.key and not bearer and not offered:
            return connection.respond(HTTPStatus.UNAUTHORIZED, "")
        if path == "/v1/realtime":
            return None
        file = WEB / ("index.html" if path == "/" else path[1:])
        if path == "/v1/models" or not file.is_file():
            return connection.respond(HTTPStatus.NOT_FOUND, "")
        headers = Headers(
            {"content-type": KINDS[file.suffix], "content-security-policy": POLICY, "connection": "close"}
        )
        body = file.read_bytes()
        headers["content-length"] = str(len(body))
        return Response(200, "OK", headers, body)

    def talk(self, connection: ServerConnection) -> None:
        heard: list[Event] = []
        self.sessions.append(heard)
        say(connection, "session.created", session={"model": self.model})
        try:
            for message in connection:
                event = json.loads(message)
                heard.append(event)
                if event["type"] == "response.create":
                    self.reply(connection, event)
                elif event["type"] == "response.cancel":
                    say(connection, "response.done", response={"id": "r", "status": "cancelled"})
        except ConnectionClosed:
            pass  # the page went on to another session

    def said(self) -> list[tuple[str, str]]:
        """Role and text of each item in the newest session."""
        items = [event["item"] for event in self.sessions[-1] if event["type"] == "conversation.item.create"]
        return [(item["role"], item["content"][0]["text"]) for item in items]


def say(connection: ServerConnection, kind: str, **fields: object) -> None:
    connection.send(json.dumps({"type": kind, "event_id": "e", **fields}))


def stream(connection: ServerConnection, *pieces: str) -> None:
    """The beginning of a reply: one step per piece, the first of one token, the others of two."""
    say(connection, "response.created", response={"id": "r"})
    for i, piece in enumerate(pieces):
        counts = {"drafted": 3, "accepted": 1, "emitted": 2} if i else {"drafted": 0, "accepted": 0, "emitted": 1}
        say(connection, "response.output_text.delta", response_id="r", delta=piece, x_seq=i + 1, x_spec=counts)


def complete(connection: ServerConnection, *pieces: str) -> None:
    stream(connection, *pieces)
    usage = {"output_tokens": 2 * len(pieces) - 1}
    say(connection, "response.done", response={"id": "r", "status": "completed", "usage": usage})


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    script = Scripted()

    def choose(connection: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        return Subprotocol("realtime") if "realtime" in offered else None

    with serve(
        script.talk, "127.0.0.1", 0, process_request=script.http, select_subprotocol=choose, compression=None
    ) as server:
        script.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}/"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield script
        server.shutdown()
        thread.join()


def test_hostile_text_stays_text(tab: Tab, scripted: Scripted) -> None:
    attack = "<script>window.owned = 1</script><img src=x onerror='window.owned = 1'><b>\n\n  bold\t</b>&lt;"
    scripted.model = f"model {attack}"
    scripted.reply = lambda connection, event: complete(connection, attack, attack)  # as a lone token and as a run
    page = tab.open(scripted.url)
    tab.ask(attack)
    assert tab.finish() == attack * 2
    assert page.locator(".turn.user .text").text_content() == attack
    assert page.text_content("#chip") == scripted.model

    scripted.reply = lambda connection, event: say(
        connection, "error", error={"message": attack, "event_id": event["event_id"]}
    )
    tab.ask("Again")
    expect(page.locator("#notice .sentence")).to_have_text(attack, use_inner_text=False)
    assert page.locator("body :is(script, b), main img").count() == 0
    assert page.evaluate("window.owned") is None
    assert tab.complaints == []


def test_content_policy_is_in_force(tab: Tab, scripted: Scripted) -> None:
    page = tab.open(scripted.url)
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.owned = 1'}))")
    assert page.evaluate("window.owned") is None
    assert any("Content Security Policy" in complaint for complaint in tab.complaints)


def test_figures_follow_the_stream(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "One", " two three", " four five")
    page = tab.open(scripted.url)
    tab.ask("Count")
    assert tab.finish() == "One two three four five"
    expect(page.locator("#tokens")).to_have_text("5")
    expect(page.locator("#per-step")).to_have_text("1.67")
    expect(page.locator("#acceptance")).to_have_text("33 % of 6")
    assert page.locator(".text .run").all_text_contents() == [" two three", " four five"]
    assert "speculation on" in tab.note()
    assert "1.67 tokens per step" in tab.note()


def test_settings_reach_the_request_and_outlive_a_reload(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: complete(connection, "Aye")
    page = tab.open(scripted.url)
    for selector, value in {
        "#instructions": "Be a pirate.",
        "#temperature": "0.2",
        "#seed": "5",
        "#max-tokens": "9",
    }.items():
        page.fill(selector, value)
    page.uncheck("#speculation")
    page.reload()
    tab.ask("Hi")
    tab.finish()
    *_, update, create = scripted.sessions[-1]
    assert update["session"]["instructions"] == "Be a pirate."
    assert create["response"] == {
        "speculation": {"mode": "none"},
        "temperature": 0.2,
        "seed": 5,
        "max_output_tokens": 9,
    }

    page.fill("#temperature", "hot")
    tab.ask("Hi again")
    assert "number from 0 to 2" in page.eval_on_selector("#temperature", "field => field.validationMessage")
    assert page.input_value("#message") == "Hi again"
    assert tab.complaints == []


def test_keyboard(tab: Tab, scripted: Scripted) -> None:
    scripted.reply = lambda connection, event: stream(connection, "On and on")
    page = tab.open(scripted.url)
    page.focus("#message")
    page.keyboard.type("One")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    expect(page.locator(".turn.assistant .text")).to_have_text("On and on")
    page.keyboard.type("next")  # the composer stays usable, and Enter keeps its words for later
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert tab.finish() == "On and on"
    assert tab.note().startswith("stopped")
    assert page.input_value("#message") == "next"
    assert scripted.said() == [("user", "One\ntwo")]
    assert page.evaluate("document.activeElement.id") == "message"


def test_refused_turn_comes_back_to_the_composer(tab: Tab, scripted: Scripted) -> None:
    message = "This model's maximum context length is 8 tokens; shorten the messages."
    scripted.reply = lambda connection, event: say(
        connection, "error", error={"message": message, "event_id": event["event_id"]}
    )
    page = tab.open(scripted.url)
    tab.ask("Far too long")
    expect(page.locator("#notice .sentence")).to_have_text(message)
    assert page.input_value("#message") == "Far too long"
    assert page.locator(".turn").count() == 0


def test_lost_connection_loses_nothing(tab: Tab, scripted: Scripted) -> None:
    def break_off(connection: ServerConnection, event: Event) -> None:
        stream(connection, "Half a")
        connection.close(1012)

    scripted.reply = lambda connection, event: complete(connection, "Hello")
    page = tab.open(scripted.url)
    tab.ask("Hi")
    tab.finish()
    scripted.reply = break_off
    tab.ask("More")
    assert tab.finish() == "Half a"
    expect(page.locator("#notice .sentence")).to_contain_text("what had arrived is kept")
    expect(page.locator("#chip")).to_have_text("scripted")  # connected again, by itself

    scripted.reply = lambda connection, event: complete(connection, "Half a loaf")
    page.click("#notice [data-action=retry]")
    expect(page.locator(".turn.assistant .text").last).to_have_text("Half a loaf")
    assert scripted.said() == [("user", "Hi"), ("assistant", "Hello"), ("user", "More")]
    tab.ask("Thanks")
    tab.finish()
    assert scripted.said()[-1] == ("user", "Thanks")

    page.click("#new")
    expect(page.locator("#empty")).to_be_visible()
    expect(page.locator("#chip")).to_have_text("scripted")
    tab.ask("Anew")
    tab.finish()
    assert scripted.said() == [("user", "Anew")]


def test_key_is_asked_for_and_used(tab: Tab, scripted: Scripted) -> None:
    scripted.key = "sesame"
    page = tab.open(scripted.url)
    expect(page.locator("#trouble .sentence")).to_have_text(
        "This server asks for an API key; enter it in the settings."
    )
    page.click("#trouble [data-action=key]")
    assert page.evaluate("document.activeElement.id") == "key"
    page.keyboard.type("tahini")
    page.keyboard.press("Enter")
    expect(page.locator("#trouble .sentence")).to_contain_text("refused this API key")
    page.fill("#key", "sesame")
    page.press("#key", "Enter")
    expect(page.locator("#chip")).to_have_text("scripted")
    expect(page.locator("#trouble")).to_be_hidden()
    assert not any("sesame" in address for address in tab.addresses)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 768, 1920])
def test_fits_every_screen(chromium: Browser, scripted: Scripted, width: int, scheme: Any) -> None:
    scripted.reply = lambda connection, event: complete(connection, "word " * 40, "unbroken" * 60)
    context = chromium.new_context(viewport={"width": width, "height": 700}, color_scheme=scheme)
    tab = Tab(context.new_page())
    page = tab.open(scripted.url)
    tab.ask("wide" * 100)
    tab.finish()
    overflow = "[...document.querySelectorAll('html, #log')].map(box => box.scrollWidth - box.clientWidth)"
    assert page.evaluate(overflow) == [0, 0]
    expect(page.locator("#send")).to_be_in_viewport(ratio=1)
    if page.locator("#settings").is_hidden():
        page.click("#settings-toggle")
    expect(page.locator("#key")).to_be_visible()
    assert page.evaluate(overflow) == [0, 0]
    unnamed = """[...document.querySelectorAll('button, input, textarea')]
        .filter(control => !(control.labels?.[0]?.textContent ?? control.textContent).trim())
        .map(control => control.id)"""
    assert page.evaluate(unnamed) == []
    context.close()


# The real server


@pytest.fixture(scope="module")
def server(chromium: Browser, default_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running `paceline serve` with the default model; needs the browser first, so that both are skipped together."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path_factory.mktemp("server") / "log"
    command = [Path(sys.executable).with_name("paceline"), "serve", default_model, "--port", port]
    options = ["--threads", 1, "--max-batch", 2, "--context-length", 2048]
    with log.open("wb") as out:
        process = subprocess.Popen([str(part) for part in command + options], stdout=out, stderr=out)
    url = f"http://127.0.0.1:{port}/"
    try:
        deadline = time.monotonic() + 120
        while not _answers(f"{url}ready"):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"not ready after two minutes: {log.read_text()}"
            time.sleep(0.1)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def set_up(tab: Tab, url: str, *, tokens: int) -> Page:
    page = tab.open(url)
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
    for figure in ("ttft", "tpot", "rate", "per-step", "tokens"):
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
    page.wait_for_timeout(300)
    assert page.locator(".turn.assistant .text").text_content() == text

    page.fill("#max-tokens", "4")
    tab.ask("Thank you.")  # the session goes on
    assert tab.finish()
    assert page.locator(".turn").count() == 4
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
