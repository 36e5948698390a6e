from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from training import ScriptedTeacher, random_target

from paceline.spec.training import states
from paceline.spec.training.dialogues import Dialogue
from paceline.spec.training.states import hidden_states
from paceline.spec.training.target import TrainingError

TARGET = random_target()
TEXTS = [Dialogue(tuple(range(n, n + 8)), ((2, 8),)) for n in range(12)]
TAPS = (1, 2)


def nobody(taps: Sequence[int]) -> ScriptedTeacher:
    raise AssertionError("all was there")


def collect(path: Path, teacher: ScriptedTeacher | None, texts: Sequence[Dialogue] = TEXTS) -> object:
    make = nobody if teacher is None else lambda taps: teacher
    return hidden_states(path, texts, TAPS, TARGET.hidden_size, make, lambda done, of: None)


@pytest.fixture(autouse=True)
def marks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "_EVERY", 20)


def test_every_row_is_what_the_teacher_says(tmp_path: Path) -> None:
    found = collect(tmp_path / "h.f16", ScriptedTeacher(TARGET, TAPS))
    expected = np.concatenate([ScriptedTeacher(TARGET, TAPS).hidden(text.tokens) for text in TEXTS])
    np.testing.assert_array_equal(found, expected.astype(np.float16))  # type: ignore[arg-type]
    np.testing.assert_array_equal(collect(tmp_path / "h.f16", None), found)  # type: ignore[call-overload]


def test_what_is_too_large_for_the_file_is_its_largest_value(tmp_path: Path) -> None:
    class Loud(ScriptedTeacher):
        def hidden(self, tokens: Sequence[int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
            return 0 * super().hidden(tokens) + np.float32(1e6)

    assert np.max(collect(tmp_path / "h.f16", Loud(TARGET, TAPS))) == 65504  # type: ignore[call-overload]


@pytest.mark.parametrize("dies_after", [0, 1, 5, 11])
def test_a_run_that_was_killed_reads_only_what_is_missing(tmp_path: Path, dies_after: int) -> None:
    whole = collect(tmp_path / "whole.f16", ScriptedTeacher(TARGET, TAPS))
    path = tmp_path / "killed.f16"
    with pytest.raises(KeyboardInterrupt):
        collect(path, ScriptedTeacher(TARGET, TAPS, dies_after))
    teacher = ScriptedTeacher(TARGET, TAPS)
    np.testing.assert_array_equal(collect(path, teacher), whole)  # type: ignore[call-overload]
    assert teacher.read <= len(TEXTS) - dies_after + 3


@pytest.mark.parametrize("dies_after", [0, 5])
def test_a_disk_without_room_is_an_error_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_after: int
) -> None:
    """Also for a run that goes on."""
    path = tmp_path / "h.f16"
    with pytest.raises(KeyboardInterrupt):
        collect(path, ScriptedTeacher(TARGET, TAPS, dies_after))

    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full, raising=False)
        needed = f"{12 * 8 * len(TAPS) * TARGET.hidden_size * 2:,}"
        with pytest.raises(TrainingError, match=rf"h\.f16 needs {needed} bytes \(No space left on device\); make room"):
            collect(path, None)
        assert path.exists() == bool(dies_after)  # what room there was is given back
    teacher = ScriptedTeacher(TARGET, TAPS)
    collect(path, teacher)
    assert teacher.read <= len(TEXTS) - dies_after + 3


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve room on a disk")
def test_the_file_has_its_room_on_the_disk_from_the_start(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        collect(tmp_path / "h.f16", ScriptedTeacher(TARGET, TAPS, 0))
    status = (tmp_path / "h.f16").stat()
    assert status.st_size == 12 * 8 * len(TAPS) * TARGET.hidden_size * 2
    assert status.st_blocks * 512 >= status.st_size


@pytest.mark.parametrize("harm", ["texts", "size", "marker", "gone"])
def test_files_that_do_not_belong_together_are_told_apart(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "h.f16"
    collect(path, ScriptedTeacher(TARGET, TAPS))
    texts = TEXTS
    if harm == "texts":
        texts = [*TEXTS[1:], TEXTS[0]]
    elif harm == "size":
        path.write_bytes(path.read_bytes()[:-2])
    elif harm == "marker":
        path.with_suffix(".json").write_text("{}")
    else:
        path.unlink()
    with pytest.raises(TrainingError, match="do not belong together"):
        collect(path, None, texts)
