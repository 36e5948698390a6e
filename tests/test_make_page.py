"""What make does about the page, with programs that only write down how they were called."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")

TOOLS = ("find", "mkdir", "rm", "sh", "touch")
NODE = """#!/bin/sh
if [ "$1" = --version ]; then echo v{version}; exit; fi
exec {node} -e "Object.defineProperty(process, 'versions', {{value: {{node: '{version}'}}}}); $2"
"""
NPM = """#!/bin/sh
echo "npm $*" >> "$LOG"
case "$FAILS" in "$1") exit 1;; esac
case "$*" in ci*) mkdir -p node_modules;; *build*) mkdir -p dist; touch dist/index.html;; esac
"""
PROGRAM = """#!/bin/sh
echo "{name}" >> "$LOG"
echo "===== {name} is done ====="
"""
CI, BUILD, TEST = "npm ci --loglevel=error", "npm run --silent build -- --logLevel warn", "npm test"


class Checkout:
    """A folder with what make looks at; all but the page is as good as installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "constraints.txt", "setup.py"):
            shutil.copy(ROOT / name, folder / name)
        for name in ("build", "public", "src/chat"):
            (folder / "web" / name).mkdir(parents=True)
        clients = folder / "tests" / "clients"
        clients.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            (clients / name).touch()
        for name in (".npmrc", "index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"):
            (folder / "web" / name).touch()
        self.programs = folder / "programs"
        self.programs.mkdir()
        for name in TOOLS:
            (self.programs / name).symlink_to(shutil.which(name) or name)
        environment = folder / ".venv" / "bin"
        environment.mkdir(parents=True)
        for name in ("paceline", "pytest"):
            write_program(environment / name, PROGRAM.format(name=name))
        time.sleep(0.01)  # stamps are newer than what they stand for
        for stamp in (".made", ".runtime", ".dev", ".clients"):
            (folder / ".venv" / stamp).touch()

    def with_node(self, version: str) -> Checkout:
        node = shutil.which("node")
        if node is None:
            pytest.skip("Node is not installed")
        write_program(self.programs / "node", NODE.format(version=version, node=node))
        write_program(self.programs / "npm", NPM)
        return self

    def make(self, target: str, fails: str = "") -> tuple[int, list[str], str]:
        """The exit status, the programs that were called, and what was printed. `fails`: the npm command that does."""
        log = self.folder / "log"
        log.write_text("")
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # of `make test`
        run = subprocess.run(
            [shutil.which("make") or "make", target],
            cwd=self.folder,
            env={**inherited, "PATH": str(self.programs), "LOG": str(log), "FAILS": fails},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return run.returncode, log.read_text().splitlines(), run.stdout


def write_program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_the_page_is_built_once_and_again_when_its_sources_change(checkout: Checkout) -> None:
    checkout.with_node("20.19.0")
    assert checkout.make("page")[:2] == (0, [CI, BUILD])
    assert checkout.make("page") == (0, [], "")
    time.sleep(0.01)  # files are told apart by their times
    (checkout.folder / "web" / "src" / "chat").rmdir()
    assert checkout.make("page")[:2] == (0, [BUILD])
    assert checkout.make("page") == (0, [], "")
    time.sleep(0.01)
    (checkout.folder / "web" / "package-lock.json").touch()
    assert checkout.make("page")[:2] == (0, [CI, BUILD])
    assert checkout.make("page") == (0, [], "")


@pytest.mark.parametrize("version", ["20.19.0", "20.20.2", "22.12.0", "23.0.0", "26.1.0"])
def test_versions_of_node_that_build_the_page(checkout: Checkout, version: str) -> None:
    assert checkout.with_node(version).make("page")[0] == 0


@pytest.mark.parametrize("version", ["18.20.4", "20.18.3", "21.7.3", "22.11.0"])
def test_versions_of_node_that_do_not(checkout: Checkout, version: str) -> None:
    status, called, said = checkout.with_node(version).make("page")
    assert (status, called) == (2, [])
    assert f"Node 20.19 or newer (of 22, 22.12) with npm, and this machine has v{version}." in said


def test_serving_does_not_wait_for_a_page_that_cannot_be_built(checkout: Checkout) -> None:
    status, called, said = checkout.make("serve")
    assert (status, called) == (0, ["paceline"])
    assert said.count("\n") == 3, "one line of ours, the command and what it prints"
    assert "The API will be served without its page: the page needs Node 20.19" in said
    checkout.with_node("22.12.0")
    status, called, said = checkout.make("serve", fails="ci")
    assert (status, called) == (0, [CI, "paceline"])
    assert "Serving without building the page" in said
    assert checkout.make("serve")[:2] == (0, [CI, BUILD, "paceline"])
    assert checkout.make("serve")[:2] == (0, ["paceline"])
    (checkout.programs / "node").unlink()
    assert "page" not in checkout.make("serve")[2], "the one that was built is served"


def test_a_missing_page_is_told_before_the_long_installation(checkout: Checkout) -> None:
    write_program(checkout.folder / ".venv" / "bin" / "pip", PROGRAM.format(name="pip"))
    (checkout.folder / ".venv" / ".runtime").unlink()
    status, called, said = checkout.make("serve")
    assert (status, called) == (0, ["pip", "paceline"])
    assert said.index("without its page") < said.index("Installing Paceline")
    assert said.count("without its page") == 1


def test_all_tests_are_run_and_the_last_line_is_that_of_the_last_ones(checkout: Checkout) -> None:
    status, called, said = checkout.make("test")
    assert (status, called) == (0, ["pytest"])
    assert "Without tests of the page: the page needs Node 20.19" in said
    checkout.with_node("20.19.0")
    assert checkout.make("test", fails="ci")[:2] == (2, [CI, "pytest"])
    status, called, said = checkout.make("test")
    assert (status, called) == (0, [CI, BUILD, TEST, "pytest"])
    assert said.endswith("===== pytest is done =====\n")
    assert checkout.make("test", fails="test")[:2] == (2, [TEST, "pytest"])


def test_check_installs_what_it_checks_with(checkout: Checkout) -> None:
    for name in ("ruff", "mypy"):
        write_program(checkout.folder / ".venv" / "bin" / name, PROGRAM.format(name=name))
    assert checkout.with_node("20.19.0").make("check")[0] == 2, "there is no ln among the tools"
    (checkout.programs / "ln").symlink_to(shutil.which("ln") or "ln")
    assert checkout.make("check")[:2] == (0, ["ruff", "ruff", "mypy", CI, "npm run check", "pytest"])
