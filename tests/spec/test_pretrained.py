from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest

from paceline.spec import pretrained

KINDS = ("eagle", "hydra", "medusa", "recurrent")


def test_folders_with_a_config_are_found_in_the_order_of_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("b-eagle", "a-medusa", "__pycache__", "c-half-copied"):
        (tmp_path / name).mkdir()
    for name in ("b-eagle", "a-medusa"):
        (tmp_path / name / "config.json").touch()
    (tmp_path / "config.json").touch()
    monkeypatch.setattr(pretrained, "__file__", str(tmp_path / "__init__.py"))
    assert pretrained.folders() == [tmp_path / "a-medusa", tmp_path / "b-eagle"]


def test_what_is_shipped_says_how_it_was_made() -> None:
    """Anyone can make it again: the command with its seed, when, and from what."""
    for folder in pretrained.folders():
        config = json.loads((folder / "config.json").read_bytes())
        assert folder.name.endswith(tuple(f"-{kind}" for kind in KINDS)), folder
        assert (folder / "model.safetensors").is_file(), folder
        assert isinstance(config["trained_for"], int), folder
        recipe = config["recipe"]
        assert recipe["command"].startswith("paceline train "), folder
        assert isinstance(recipe["seed"], int), folder
        assert datetime.datetime.fromisoformat(recipe["date"]), folder
        assert recipe["data"], folder
