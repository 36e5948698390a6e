"""From a name to a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from paceline.engine.errors import ModelError
from paceline.engine.model import sources
from paceline.engine.model.sources import DEFAULT_MODEL, default_cache, resolve


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [DEFAULT_MODEL, "default"])
def test_the_default_model(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "fetch_default", lambda cache, report: cache / "found.gguf")
    assert resolve(name, tmp_path) == tmp_path / "found.gguf"


def test_paths(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "models").mkdir()
    file = here / "models" / "tiny.GGUF"
    file.write_bytes(b"GGUF")
    (here / "models" / "config.json").write_text("{}")
    assert resolve("models/tiny.GGUF", here) == Path("models/tiny.GGUF")
    assert resolve(str(file), here) == file
    assert resolve("models", here) == Path("models")
    monkeypatch.setenv("HOME", str(here))
    assert resolve("~/models/tiny.GGUF", here) == file


def test_a_folder_here_comes_before_the_hub(here: Path) -> None:
    (here / "org" / "name").mkdir(parents=True)
    (here / "org" / "name" / "config.json").write_text("{}")
    assert resolve("org/name", here) == Path("org/name")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-9", ["'gpt-9'", f"'{DEFAULT_MODEL}'", ".gguf", "folder", "org/name"]),
        ("", ["no model called ''"]),
        ("a/b/c", ["no model called 'a/b/c'"]),
        ("/nowhere/model.gguf", ["no model at /nowhere/model.gguf"]),
        ("sub/model.gguf", ["no model at sub/model.gguf"]),
        ("./nowhere", ["no model at nowhere"]),
        ("/nowhere", ["no model at /nowhere"]),
        ("weights.bin", ["weights.bin is not a .gguf file"]),
        ("empty", ["empty has no config.json"]),
        ("bad\0name", ["no model called"]),
        ("x" * 5000, ["no model called"]),
    ],
)
def test_what_is_not_a_model(name: str, words: list[str], here: Path) -> None:
    (here / "weights.bin").write_bytes(b"")
    (here / "empty").mkdir()
    with pytest.raises(ModelError) as caught:
        resolve(name, here)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert list(here.glob("models")) == []


def test_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PACELINE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache() == tmp_path / ".cache" / "paceline"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache() == tmp_path / ".cache" / "paceline"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_cache() == Path("/xdg/paceline")
    monkeypatch.setenv("PACELINE_CACHE", "~/own")
    assert default_cache() == tmp_path / "own"
