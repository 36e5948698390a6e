from __future__ import annotations

from pathlib import Path

import pytest

from paceline.spec.training.files import SETTINGS, run_folder, write_atomically
from paceline.spec.training.target import TrainingError


def refusal(folder: Path, **settings: object) -> str:
    with pytest.raises(TrainingError) as caught, run_folder(folder, settings):
        pass
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def begun(folder: Path, **settings: object) -> Path:
    with run_folder(folder, settings):
        return folder


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_goes_on_with_the_same_settings_only(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    for _ in range(2):
        with run_folder(folder, {"--tokens": 5, "--seed": 0}) as work:
            assert work.is_dir()
    message = refusal(folder, **{"--tokens": 6, "--seed": 0})
    assert "--tokens 5 instead of 6" in message
    assert "--seed" not in message
    for broken in ("[]", '"text"', "{"):
        (folder / SETTINGS).write_text(broken)
        assert "is damaged" in refusal(folder, a=1)


def test_what_was_not_recorded_when_a_run_began_does_not_end_it(tmp_path: Path) -> None:
    folder = begun(tmp_path / "old", **{"--tokens": 5})
    begun(folder, **{"--tokens": 5, "checksum": 7, "--start": None})
    assert "--start None instead of 3" in refusal(folder, **{"--tokens": 5, "--start": 3})
    assert "checksum 7 instead of 8" in refusal(begun(tmp_path / "new", checksum=7), checksum=8)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").touch()
    assert "holds other files" in refusal(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "file" in refusal(tmp_path / "file" / "run")
    assert "cannot be written" in refusal(tmp_path / "file" / "run")


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with run_folder(tmp_path / "run", {}):
        assert "Another process trains" in refusal(tmp_path / "run")
