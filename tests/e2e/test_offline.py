"""The page without its server, and with a newer one."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from browser import LATE_S, Tab
from playwright.sync_api import Error, Page, expect
from scripted_page import Scripted, scripted_page

from paceline.server.page import DIST, page_files

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

KEPT = "caches.keys().then(names => names.sort())"


@pytest.fixture
def server() -> Iterator[tuple[Scripted, ExitStack]]:
    """A server, and what stops it when it is closed."""
    with ExitStack() as stack:
        yield stack.enter_context(scripted_page()), stack


def opened(tab: Tab, script: Scripted) -> Page:
    """The page with its worker in place."""
    page = tab.open(script.url)
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    return page


def until(page: Page, promise: str) -> None:
    """Until what an expression promises is true."""
    page.evaluate(
        f"""async patience => {{
            const deadline = Date.now() + patience;
            while (!(await {promise})) {{
                if (Date.now() > deadline) throw new Error('it never came true');
                await new Promise(done => setTimeout(done, 20));
            }}
        }}""",
        1000 * LATE_S,
    )


def views(page: Page) -> None:
    expect(page.get_by_role("navigation", name="Views")).to_be_visible()


def test_the_page_opens_when_the_server_is_away(tab: Tab, server: tuple[Scripted, ExitStack]) -> None:
    script, running = server
    page = opened(tab, script)
    assert tab.complaints == []
    running.close()
    page.reload()
    views(page)
    other = page.context.new_page()
    other.goto(f"{script.url}?from=home#/race")
    views(other)
    expect(other.locator("a[aria-current=page]")).to_have_text("Race")
    # Every part of it, also those that were never looked at; and of the rest of the server nothing.
    parts = [path for path in script.files if path not in ("/", "/sw.js")]
    assert len(parts) > 4
    reach = "path => fetch(path).then(answer => answer.status, () => 0)"
    assert [page.evaluate(reach, path) for path in parts] == [200] * len(parts)
    api = ("/v1/models", "/metrics", "/health", "/ready", "/sw.js", "/nothing")
    assert [page.evaluate(reach, path) for path in api] == [0] * len(api)


def test_the_page_is_never_older_than_the_server(tab: Tab, server: tuple[Scripted, ExitStack], tmp_path: Path) -> None:
    script, running = server
    page = opened(tab, script)
    (old,) = page.evaluate(KEPT)

    newer = shutil.copytree(DIST, tmp_path / "newer")
    index, worker = newer / "index.html", newer / "sw.js"
    index.write_text(index.read_text().replace("<title>Paceline</title>", "<title>Newer</title>"))
    worker.write_text(re.sub(rf"\b{old.rpartition(' ')[2]}\b", "newer", worker.read_text()))
    script.files = page_files(newer)
    page.reload()
    assert page.title().endswith("Newer")

    # While a tab shows the old version it can still load its parts. The new one is kept when that tab is closed.
    until(page, "navigator.serviceWorker.getRegistration().then(found => Boolean(found.waiting))")
    assert page.evaluate(KEPT) == sorted([old, "paceline-page / newer"])
    context = page.context
    page.close()
    later = context.new_page()
    later.goto(script.url)
    until(later, "caches.keys().then(names => names.length === 1)")
    assert later.evaluate(KEPT) == ["paceline-page / newer"]
    running.close()
    later.reload()
    assert later.title().endswith("Newer")
    views(later)


def test_nothing_but_the_page_may_make_code_or_markup_of_strings(tab: Tab, scripted: Scripted) -> None:
    page = opened(tab, scripted)
    for forbidden in (
        "document.body.innerHTML = '<b>bold</b>'",
        "document.createElement('script').text = 'alert(1)'",
        "trustedTypes.createPolicy('other', {createHTML: text => text})",
        "trustedTypes.createPolicy('paceline-worker', {createScriptURL: text => text})",
        "navigator.serviceWorker.register('other.js')",
        "new Worker('data:text/javascript,1')",
    ):
        with pytest.raises(Error, match=r"Trusted|policy"):
            page.evaluate(f"async () => {{ await ({forbidden}); }}")
    assert page.evaluate("fetch('https://example.com/').then(() => 'reached', () => 'kept in')") == "kept in"
