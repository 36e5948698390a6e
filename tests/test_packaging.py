"""What pip installs is what lies in the folders."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
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


@pytest.mark.proof
def test_a_wheel_holds_every_module_and_the_whole_page(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    copy.mkdir()
    for name in (*ROOMS, "pyproject.toml", "README.md", "LICENSE", "setup.py"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (ROOT / name).is_file():
            shutil.copy(ROOT / name, copy / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path, copy]
    subprocess.run(build, check=True, cwd=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {f"paceline/{path.relative_to(ROOT)}" for room in ROOMS for path in (ROOT / room).rglob("*.py")}
    page = {
        f"paceline/{path.relative_to(ROOT)}"
        for path in (ROOT / "web").rglob("*")
        if path.suffix in (".html", ".css", ".js", ".svg", ".woff2", ".png", ".ico")
    }
    assert "paceline/web/index.html" in page
    assert modules | page <= names
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"paceline"}
    assert any(name.endswith("licenses/LICENSE") for name in names)
