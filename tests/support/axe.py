"""axe-core's findings on a page (Deque's engine of WCAG rules, a development dependency of the page)."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

_SOURCE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """async () => {
    const {violations} = await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa',
        'best-practice']});
    return violations.flatMap(({id, help, nodes}) => nodes.map(node => `${id}: ${help}: ${node.target.join(' ')}: ` +
        `${node.failureSummary}`));
}"""

needs_axe = pytest.mark.skipif(not _SOURCE.is_file(), reason="axe-core is not installed; with Node: make page")


def violations(page: Page) -> list[str]:
    """One line for each element that breaks a rule of WCAG 2.2 A or AA, or a best practice."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_SOURCE.read_text(encoding="utf-8"))  # not as a script element, which the content policy forbids
    found: list[str] = page.evaluate(_RUN)
    return found
