"""The page's modules that need no browser, tested by Node's own runner."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WEB = HERE.parent.parent / "web"


@pytest.mark.parametrize("suite", sorted(path.name for path in HERE.glob("test_*.mjs")))
def test_suite(suite: str, tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed; on Debian and Ubuntu: apt-get install nodejs")
    # A copy, because Node takes a plain .js file for a module only below a package.json that says so, and the served
    # folder should hold nothing that a browser does not load.
    shutil.copytree(WEB, tmp_path / "web", ignore=shutil.ignore_patterns("__pycache__"))
    tests = tmp_path / "tests" / "web"
    tests.mkdir(parents=True)
    shutil.copy(HERE / suite, tests)
    (tmp_path / "package.json").write_text('{"type": "module"}\n')
    run = subprocess.run([node, "--test", tests / suite], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "# tests 0\n" not in run.stdout
