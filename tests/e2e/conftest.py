"""The browser, and the servers that the page talks to: a scripted one, and a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from browser import FLAGS, Tab, chromium_path
from pictures import picture, pytest_runtest_makereport
from playwright.sync_api import Browser, Page, sync_playwright
from scripted_page import Scripted, scripted_page
from serve_command import serving

from paceline.server.page import page_files

__all__ = ["pytest_runtest_makereport"]  # found here by pytest


@pytest.fixture(scope="session")
def chromium_program() -> str:
    if not page_files():
        pytest.skip("The page is not built; with Node 20.19 or newer (of 22, 22.12): make page")
    path = chromium_path()
    if path is None:
        pytest.skip("Chromium is not installed; on Debian and Ubuntu: apt-get install chromium")
    return path


# Not for the session: while Playwright runs, no other test of the process can have an event loop.
@pytest.fixture(scope="module")
def chromium(chromium_program: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_program, args=FLAGS.split())
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    yield Tab.of(context.new_page())
    context.close()


@pytest.fixture
def keep(pytestconfig: pytest.Config) -> Callable[[Page, str], Path]:
    """Keeps a picture of a page under a name."""
    return partial(picture, pytestconfig.rootpath)


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with scripted_page() as script:
        yield script


@pytest.fixture(scope="session")
def server(chromium_program: str, default_model: Path) -> Iterator[str]:
    """A running `paceline serve` with the default model; needs the browser first, so that both are skipped together."""
    with serving(default_model, "--max-batch", "2", "--context-length", "2048") as (_, url):
        yield f"{url}/"
