"""The browser, and the scripted server that the page talks to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from browser import CHROMIUM_NAMES, FLAGS, Tab
from playwright.sync_api import Browser, sync_playwright
from scripted_page import Scripted, scripted_page

from paceline.server.page import page_files


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if not page_files():
        pytest.skip("The page is not built; with Node 20.19 or newer (of 22, 22.12): make page")
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
    yield Tab.of(context.new_page())
    context.close()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with scripted_page() as script:
        yield script
