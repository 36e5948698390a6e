"""The wheel and the source distribution, really built; but for the kernels, which take minutes and are optional."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("engine", "kernels", "server", "spec", "web")
PAGE = ("index.html", "sw.js", "icon.svg", "manifest.webmanifest", "assets/main-a1b2.js", "assets/main-a1b2.css")
NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules", "dist", "*.so")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what is built from, with one more drafter and a page of its own: there need not be any yet."""
    copy = tmp_path / "checkout"
    copy.mkdir()
    for name in (*ROOMS, *(path.name for path in ROOT.iterdir() if path.is_file())):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=NOT_COPIED)
        else:
            shutil.copy(ROOT / name, copy / name)
    drafter = copy / "spec" / "pretrained" / "some-model-eagle"
    drafter.mkdir()
    for name in ("config.json", "model.safetensors"):
        (drafter / name).touch()
    for name in PAGE:
        file = copy / "web" / "dist" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"this is {name}", encoding="utf-8")
    return copy


def run(folder: Path, *command: str | Path) -> None:
    without_compiler = {**os.environ, "CC": "false", "CXX": "false"}
    done = subprocess.run(command, cwd=folder, env=without_compiler, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def wheel_of(source: Path, out: Path) -> set[str]:
    """What lies in the wheel that pip builds of a folder."""
    run(out.parent, sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", out, source)
    (wheel,) = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_a_wheel_holds_every_module_every_drafter_and_the_page(checkout: Path, tmp_path: Path) -> None:
    names = wheel_of(checkout, tmp_path / "wheel")
    modules = {f"paceline/{path.relative_to(ROOT)}" for room in ROOMS for path in (ROOT / room).glob("**/*.py")}
    modules = {name for name in modules if "/node_modules/" not in name}
    page = {f"paceline/web/dist/{name}" for name in PAGE}
    drafters = {
        f"paceline/{path.relative_to(checkout)}"
        for path in (checkout / "spec" / "pretrained").rglob("*")
        if path.suffix in (".json", ".safetensors")
    }
    assert "paceline/spec/pretrained/some-model-eagle/model.safetensors" in drafters
    assert modules | page | drafters <= names
    assert {name for name in names if name.startswith("paceline/web/")} == page | {"paceline/web/__init__.py"}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"paceline"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


@pytest.mark.proof
def test_a_folder_without_a_built_page_is_installed_without(checkout: Path, tmp_path: Path) -> None:
    shutil.rmtree(checkout / "web" / "dist")
    names = wheel_of(checkout, tmp_path / "wheel")
    assert {name for name in names if name.startswith("paceline/web/")} == {"paceline/web/__init__.py"}
    assert "paceline/server/page.py" in names


@pytest.mark.proof
def test_a_source_distribution_is_enough_for_the_same_wheel_and_for_the_page(checkout: Path, tmp_path: Path) -> None:
    sdist = "from setuptools import build_meta; import sys; build_meta.build_sdist(sys.argv[1])"
    run(checkout, sys.executable, "-c", sdist, tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert wheel_of(source, tmp_path / "second") == wheel_of(checkout, tmp_path / "first")
    for folder in ("kernels/native/src", "web/src", "web/public", "web/build"):
        files = {path.relative_to(checkout) for path in (checkout / folder).rglob("*") if path.is_file()}
        assert files
        assert all((source / path).is_file() for path in files)
    for name in ("package.json", "package-lock.json", "vite.config.ts", "tsconfig.json", "index.html", ".npmrc"):
        assert (source / "web" / name).is_file(), name
