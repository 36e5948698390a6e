"""The browser, and the scripted server that the page talks to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from browser import CHROMIUM_NAMES, FLAGS, Tab
from playwright.sync_api import Browser, sync_playwright
from scripted_page import Scripted, scripted_page


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        pytest.skip("Chromium is not installed; on Debian and Ubuntu: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        yield browser
        browser.close()


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


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with scripted_page() as script:
        yield script
