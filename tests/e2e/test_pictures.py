"""A test of the page that fails leaves pictures of what it saw."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pictures import FOLDER

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("chromium")]

SUPPORT = Path(__file__).parents[1] / "support"
CONFTEST = """
import pytest
from browser import FLAGS
from pictures import pytest_runtest_makereport
from playwright.sync_api import sync_playwright

@pytest.fixture
def chromium():
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path={program!r}, args=FLAGS.split())
"""
TESTS = """
import pytest

@pytest.mark.parametrize("word", ["one and two", "none"])
def test_words(chromium, word):
    for _ in word.split()[1:]:
        chromium.new_context(viewport={"width": 320, "height": 200}).new_page().set_content(word)
    assert word == "none"
"""


def test_each_open_page_is_in_a_picture_that_the_report_names(chromium_program: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(program=chromium_program), encoding="utf-8")
    (tmp_path / "test_some.py").write_text(TESTS, encoding="utf-8")
    program = Path(sys.executable).with_name("pytest")
    command = [program, "--rootdir", str(tmp_path), "-p", "no:cacheprovider", str(tmp_path)]
    run = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(SUPPORT)}, cwd=tmp_path, capture_output=True, text=True
    )
    assert "1 failed, 1 passed" in run.stdout, run.stdout + run.stderr
    pictures = sorted((tmp_path / FOLDER).rglob("*.png"))
    assert [path.name for path in pictures] == [f"test_some-test_words-one-and-two-{number}.png" for number in (1, 2)]
    for path in pictures:
        assert str(path) in run.stdout
        size = path.read_bytes()[16:24]  # width and height, each four bytes, at the head of a PNG
        assert (int.from_bytes(size[:4]), int.from_bytes(size[4:])) == (320, 200)
