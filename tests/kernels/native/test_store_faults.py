"""Packed weights that are damaged, half written or shared: found out, never served, and made anew."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import packed_files
import pytest
from packed_files import Filling, expect_made, start_many

from paceline.kernels.native.store import FileStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "packed" / "model.bin"


def test_a_file_is_read_to_its_end_however_little_comes_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reads 2 GiB at most, and less when a signal arrives."""
    Filling(FileStore(path, "f"))

    class Trickle(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            return super().readinto(memoryview(buffer)[:1000]) or 0

    monkeypatch.setattr(Path, "open", lambda self, mode="r", buffering=-1: Trickle(self, mode))
    expect_made(path, 0)


def test_a_file_that_shrinks_or_breaks_while_it_is_read_is_made_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            return super().readinto(memoryview(buffer)[:1000]) or 0 if self.tell() < 50_000 else 0

    class Broken(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            raise OSError(5, "Input/output error")

    for kind in (Short, Broken):
        Filling(FileStore(path, "f"))
        with monkeypatch.context() as patch:
            patch.setattr(Path, "open", lambda self, mode="r", buffering=-1, kind=kind: kind(self, mode.strip("b")))
            store = FileStore(path, "f")
        again = Filling(store)
        assert again.made == 4
        again.check()


def _damages() -> dict[str, Any]:
    def cut(path: Path) -> None:
        for file in path.parent.iterdir():
            data = file.read_bytes()
            file.write_bytes(data[: len(data) // 2])

    def short(path: Path) -> None:
        """No room for what stands at the end of every file."""
        path.write_bytes(path.read_bytes()[-15:])

    def tail(path: Path) -> None:
        path.write_bytes(path.read_bytes()[-16:])

    def empty(path: Path) -> None:
        for file in path.parent.iterdir():
            file.write_bytes(b"")

    def noise(path: Path) -> None:
        for file in path.parent.iterdir():
            file.write_bytes(np.random.default_rng(2).bytes(file.stat().st_size))

    def longer(path: Path) -> None:
        path.write_bytes(path.read_bytes() + b"\0" * 64)

    def foreign(path: Path) -> None:
        path.write_bytes(b"GGUF" + bytes(1000))

    def zeroed(path: Path) -> None:
        """As after a crash of the machine: the size is there, the bytes never arrived."""
        path.write_bytes(bytes(path.stat().st_size))

    def moved(path: Path) -> None:
        """As after a bad sector map: every byte is there, in another place."""
        data = path.read_bytes()
        path.write_bytes(data[64:128] + data[:64] + data[128:])

    def deep(path: Path) -> None:
        index = b"[" * 200_000
        path.write_bytes(index + struct.pack("<QQ", len(index), 0))

    def folder(path: Path) -> None:
        path.unlink()
        path.mkdir()

    return {f.__name__: f for f in (cut, short, tail, empty, noise, longer, foreign, zeroed, moved, deep, folder)}


@pytest.mark.parametrize("damage", _damages())
def test_a_damaged_or_foreign_file_is_made_anew(path: Path, damage: str) -> None:
    Filling(FileStore(path, "f"))
    _damages()[damage](path)
    expect_made(path, 4)
    if damage != "folder":  # someone else's folder is left alone
        assert Filling(FileStore(path, "f")).made == 0


@pytest.mark.parametrize("arrays", [[], None, {"k": 5}, {"k": [1]}, {"k": [-64, 64]}, {"k": [0, 1 << 40]}])
def test_an_index_that_makes_no_sense_is_made_anew(path: Path, arrays: Any) -> None:
    Filling(FileStore(path, "f"))
    body = path.read_bytes()[:-16]
    length, _ = struct.unpack("<QQ", path.read_bytes()[-16:])
    text = json.dumps({**json.loads(body[-length:]), "arrays": arrays}).encode()
    body = body[:-length] + text
    path.write_bytes(body + struct.pack("<QQ", len(text), zlib.crc32(body)))
    expect_made(path, 4)


@pytest.mark.skipif(os.name != "posix", reason="only there can a process be asked whether it runs")
def test_what_a_killed_process_left_is_removed(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    left, in_use = (path.with_name(f"{path.name}.{pid}-1") for pid in (gone.pid, os.getpid()))
    for file in (left, in_use):
        file.write_bytes(b"half")
    Filling(FileStore(path, "f"))
    assert not left.exists()
    assert in_use.exists()


def test_flipped_bytes_are_noticed(path: Path) -> None:
    """Anywhere in the file: weights that are silently wrong would be the worst of all."""
    Filling(FileStore(path, "f"))
    whole = path.read_bytes()
    for at in np.linspace(0, len(whole) - 1, 41).astype(int).tolist():
        broken = bytearray(whole)
        broken[at] ^= 0x10
        path.write_bytes(broken)
        again = Filling(FileStore(path, "f"))
        again.check()
        path.write_bytes(whole)


def test_an_unwritable_folder_only_costs_time(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    for _ in range(2):
        filling = Filling(FileStore(blocked / "packed" / "model.bin", "f"))
        assert filling.made == 4
        filling.check()


def test_a_full_disk_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    Filling(FileStore(path, "f")).check()
    monkeypatch.undo()
    assert list(path.parent.iterdir()) == []
    assert Filling(FileStore(path, "f")).made == 4


def test_two_processes_at_once_never_read_each_others_halves(path: Path) -> None:
    """Two models of equal sizes take turns in one file as fast as they can; each always gets its own bytes."""
    others = [
        subprocess.Popen([sys.executable, packed_files.__file__, str(path), name, str(seed)])
        for seed, name in enumerate(("f", "g"))
    ]
    assert [process.wait() for process in others] == [0, 0]
    assert list(path.parent.iterdir()) == [path]


def test_two_threads_at_once(path: Path) -> None:
    """Two engines of one process do not write to the same scratch file."""
    failures: list[BaseException] = []

    def start(name: str, seed: int) -> None:
        try:
            start_many(path, name, seed, 40)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=("f", 0)), threading.Thread(target=start, args=("g", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
