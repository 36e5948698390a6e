"""examples/browser.html in Chromium, served by another server than Paceline, as a user's own page would be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from browser import FLAGS, chromium_path
from example_programs import EXAMPLES
from playwright.sync_api import Page, expect, sync_playwright
from service import LiveServer, live_server, running_service, wait_until

from paceline.server.context import Settings

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

KEY = "a-key-for-pages"
# What the page gets and sends from now on, in `seen` and `outgoing`.
RECORD = """() => {
    window.seen = [];
    window.outgoing = [];
    const [known, original] = [receive, WebSocket.prototype.send];
    receive = (event) => { window.seen.push(event); known(event); };
    WebSocket.prototype.send = function (data) {
        window.outgoing.push(JSON.parse(data));
        original.call(this, data);
    };
}"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=EXAMPLES)) as files:
        thread = threading.Thread(target=files.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{files.server_port}"
        files.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def guarded(origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that wants a key and lets that page in."""
    with (
        running_service(tmp_path_factory.mktemp("browser"), context_length=4096) as service,
        live_server(service, Settings(api_keys=(KEY,), allowed_origins=(origin,))) as server,
    ):
        yield server


@pytest.fixture
def page(origin: str, guarded: LiveServer) -> Iterator[Page]:
    """Connected."""
    path = chromium_path()
    if path is None:
        pytest.skip("Chromium is not installed; on Debian and Ubuntu: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        page = browser.new_page()
        mistakes: list[str] = []
        page.on("pageerror", lambda error: mistakes.append(str(error)))
        page.goto(f"{origin}/browser.html")
        page.fill("#url", f"ws://127.0.0.1:{guarded.port}/v1/realtime")
        page.fill("#key", KEY)
        page.click("#connect")
        expect(page.locator("#state")).to_have_text("open")
        yield page
        assert mistakes == []
        browser.close()


def test_a_message_is_computed_while_it_is_typed_and_a_reply_outlives_its_connection(
    page: Page, guarded: LiveServer
) -> None:
    page.evaluate(
        "send('session.update', {session: {max_output_tokens: 400, logit_bias: {2: -100}, type: 'realtime'}})"
    )
    page.evaluate(RECORD)
    page.locator("#message").press_sequentially("Tell me a storry")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    page.keyboard.type("y about a lighthouse keeper and the sea, please.")
    page.wait_for_function("seen.some(event => event.type === 'x_input_text.prefilled' && event.stable_tokens > 16)")
    page.click("#send")
    page.wait_for_function("reply?.seq > 5")
    page.evaluate("socket.close()")
    expect(page.locator("#state")).to_contain_text("closed")
    page.wait_for_function("seen.some(event => event.type === 'session.created')")
    page.wait_for_function("seen.some(event => event.type === 'response.done')", timeout=60_000)
    done = page.evaluate("seen.find(event => event.type === 'response.done').response")
    text = page.locator(".assistant").text_content()
    assert text == done["output"][0]["content"][0]["text"]
    assert done["usage"]["input_token_details"]["cached_tokens"] > 0
    resumed = page.evaluate("outgoing.filter(event => event.type === 'x_response.resume').length")
    assert resumed == 1
    assert page.locator(".error").count() == 0

    page.evaluate("send('session.update', {session: {type: 'realtime', max_output_tokens: 'inf'}})")
    page.fill("#message", "And then?")  # the conversation is the old one
    page.click("#send")
    expect(page.locator(".assistant")).to_have_count(2)
    page.click("#cancel")
    expect(page.locator("#state")).to_have_text("open, cancelled")
    assert page.locator(".error").count() == 0
    wait_until(lambda: guarded.service.loop.stats().running == 0)
