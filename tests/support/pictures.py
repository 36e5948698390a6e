"""Pictures of the page, for whoever wants to know what a test saw: in a folder that git ignores."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page

FOLDER = Path("tests", "e2e", "screenshots")  # from the root of the tests


def picture(root: Path, page: Page, name: str) -> Path:
    """Keeps what a page shows now as `name`.png, over an older one of that name."""
    path = root / FOLDER / f"{name}.png"
    page.screenshot(path=path, animations="disabled")
    return path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails leaves a picture of each page its browser has open; where they lie stands in the report."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("chromium")
    if report.failed and isinstance(browser, Browser) and browser.contexts:
        report.sections.append(("Pictures of the open pages", "\n".join(_all(item, browser))))
    return report


def _all(item: pytest.Item, browser: Browser) -> list[str]:
    name = re.sub(r"[^\w.-]+", "-", f"{item.path.stem} {item.name}").strip("-")
    told = []
    for context in browser.contexts:
        for number, page in enumerate(context.pages, len(told) + 1):
            try:
                told.append(str(picture(item.config.rootpath, page, f"failed/{name}-{number}")))
            except Error as error:  # a page that broke; the test's own failure says more
                told.append(f"none of page {number}: {error.message}")
        context.close()  # else one that the test had no time to close would be in the pictures of the next
    return told
