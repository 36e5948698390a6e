"""What pip installs is what lies in the folders."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("engine", "kernels", "server", "spec", "web")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def normalised(name: str) -> str:
    """PEP 503: how names of distributions are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match is not None
    return normalised(match.group())


def test_packages_are_the_folders_with_an_init_file() -> None:
    """setuptools cannot find packages under a mapped name by itself, so the list is kept by hand."""
    folders = [path.parent.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("__init__.py")]
    on_disk = sorted(".".join(("paceline", *folder.parts)) for folder in folders)
    assert PROJECT["tool"]["setuptools"]["packages"] == on_disk


def test_drafters_are_packaged_with_their_files() -> None:
    assert "paceline.spec.pretrained" in PROJECT["tool"]["setuptools"]["packages"]
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["paceline.spec.pretrained"]
    home = ROOT / "spec" / "pretrained"
    packaged = {path for pattern in patterns for path in home.glob(pattern)}
    shipped = {path for path in home.rglob("*") if path.is_file() and path.parent != home and path.suffix != ".pyc"}
    assert packaged == shipped, "config.json and safetensors, nothing else"
    for needed in ("smollm2-eagle/config.json", "smollm2-eagle/model.safetensors"):
        assert any(Path(needed).match(pattern) for pattern in patterns), needed


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    assert not [folder for folder in folders if not (folder / "__init__.py").is_file()]


def test_constraints_pin_every_requirement_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9._!]+", pin) for pin in pins)
    pinned = {requirement_name(pin) for pin in pins}
    assert len(pinned) == len(pins)
    extras = PROJECT["project"]["optional-dependencies"]
    for requirement in [*PROJECT["project"]["dependencies"], *extras["dev"]]:
        assert requirement_name(requirement) in pinned, requirement


def test_constraints_pin_what_the_requirements_require() -> None:
    """All that is installed here through our requirements, however deep, is pinned to the version that is installed."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = {requirement_name(line): line.partition("==")[2] for line in text.splitlines() if "==" in line}
    extras = PROJECT["project"]["optional-dependencies"]
    waiting = {requirement_name(line) for line in [*PROJECT["project"]["dependencies"], *extras["dev"]]}
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        try:
            found = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform, or of an extra
        if name.startswith(("nvidia-", "cuda-", "triton")):
            continue  # pinned by torch itself, in the builds that have them
        assert found.version.partition("+")[0] == pins.get(name), f"{name} {found.version} is installed"
        needed = {requirement_name(line) for line in found.requires or () if "extra ==" not in line}
        waiting |= needed - seen


def test_the_page_is_built_with_exact_versions_from_any_registry() -> None:
    """Checked by their digests; an address in the list would tie a build to one registry."""
    package = json.loads((ROOT / "web" / "package.json").read_text(encoding="utf-8"))
    for name, version in {**package["dependencies"], **package["devDependencies"]}.items():
        assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    assert {key: lock[""][key] for key in ("dependencies", "devDependencies", "engines")} == {
        key: package[key] for key in ("dependencies", "devDependencies", "engines")
    }
    installed = {path: entry for path, entry in lock.items() if path}
    assert len(installed) > 20
    assert all("integrity" in entry and "resolved" not in entry for entry in installed.values())
    # `npm ci` refuses a list that leaves one out, as npm itself does with optional ones it could not find.
    names = {path.rpartition("node_modules/")[2] for path in installed}
    for path, entry in installed.items():
        assert {*entry.get("dependencies", ()), *entry.get("optionalDependencies", ())} <= names, path


def test_every_imported_library_is_a_declared_dependency() -> None:
    """Not one that happens to be there because another library needs it, or the developer has it."""
    gpu = PROJECT["project"]["optional-dependencies"]["gpu"]
    declared = {requirement_name(line) for line in [*PROJECT["project"]["dependencies"], *gpu]}
    of_module = importlib.metadata.packages_distributions()
    undeclared = set()
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for name in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"paceline"}:
                if not declared & {normalised(found) for found in of_module.get(name, [name])}:
                    undeclared.add(f"{path.relative_to(ROOT)}: {name}")
    assert not undeclared


def test_metadata_names_the_command_and_the_license() -> None:
    assert PROJECT["project"]["scripts"] == {"paceline": "paceline.server.cli:main"}
    assert PROJECT["project"]["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert importlib.metadata.version("paceline") == PROJECT["project"]["version"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What make looks at, with an environment whose pip only writes down what it was asked."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "setup.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    source = tmp_path / "kernels" / "native" / "src" / "module.cpp"
    source.parent.mkdir(parents=True)
    source.touch()
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    (programs / "python").symlink_to(sys.executable)
    (programs / "pip").write_text('#!/bin/sh\necho "$@" >> pip.log\n', encoding="utf-8")
    (programs / "pip").chmod(0o755)
    (tmp_path / ".venv" / ".made").touch()
    return tmp_path


def asked_of_pip(checkout: Path, stamp: str) -> tuple[list[str], str]:
    """What `make` has pip install on the way to a stamp, and what it prints."""
    log = checkout / "pip.log"
    log.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}  # of `make test` itself
    made = subprocess.run(
        ["make", f".venv/{stamp}"], cwd=checkout, env=environment, capture_output=True, text=True, check=True
    )
    return (log.read_text(encoding="utf-8").splitlines() if log.exists() else []), made.stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_compiles_the_kernels_once_and_again_when_they_change(checkout: Path) -> None:
    package = "install -c constraints.txt -e ."
    tools = "install -c constraints.txt -r .venv/dev.txt"
    asked, said = asked_of_pip(checkout, ".runtime")
    assert asked == [package]
    assert said.count("Compiling the kernels") == 1
    asked, said = asked_of_pip(checkout, ".dev")
    assert asked == [tools]
    assert "Compiling" not in said
    extras = PROJECT["project"]["optional-dependencies"]
    assert (checkout / ".venv" / "dev.txt").read_text(encoding="utf-8").splitlines() == extras["dev"]
    assert asked_of_pip(checkout, ".dev")[0] == []

    later = time.time() + 5
    os.utime(checkout / "kernels" / "native" / "src" / "module.cpp", (later, later))
    assert asked_of_pip(checkout, ".dev")[0] == [package]
