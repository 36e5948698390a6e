"""Packed weights are found again at the next start, and never taken from a file that is not theirs."""

from __future__ import annotations

import io
import json
import mmap
import os
import struct
import subprocess
import sys
import threading
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from paceline.kernels.native import store as store_module
from paceline.kernels.native.store import FileStore, MemoryStore, zeros

HUGE = 2 << 20
SIZES = {"a": 100, "b": 64, "c": 1, "d": 70_000}


def content(key: str, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng([ord(key), seed]).integers(0, 256, SIZES[key], np.uint8)


class Filling:
    """Asks a store for everything and counts what had to be made."""

    def __init__(self, store: FileStore | MemoryStore, seed: int = 0, keys: str = "abcd") -> None:
        self.made = 0
        self.arrays = {key: store.array(key, SIZES[key], self._fill(key, seed)) for key in keys}
        store.finish()

    def _fill(self, key: str, seed: int) -> Any:
        def fill(out: NDArray[np.uint8]) -> None:
            assert not out.any(), "packing adds to zeros"
            self.made += 1
            out[:] = content(key, seed)

        return fill

    def check(self, seed: int = 0) -> None:
        for key, array in self.arrays.items():
            assert array.dtype == np.uint8
            assert array.ctypes.data % 64 == 0
            assert np.array_equal(array, content(key, seed)), key


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "packed" / "model.bin"


@pytest.mark.parametrize("size", [1, 63, 64, 1000, HUGE - 1, HUGE, HUGE + 1, 5 * HUGE + 7])
def test_zeros_start_at_a_page_of_the_largest_kind(size: int) -> None:
    data = zeros(size)
    assert data.shape == (size,)
    assert not data.any()
    assert data.ctypes.data % HUGE == 0
    data[:] = 1  # all of it is ours


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="this system has no huge pages to ask for")
def test_huge_pages_are_asked_for_where_one_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Memory(mmap.mmap):
        def madvise(self, option: int, *rest: int) -> None:
            asked.append(option)
            raise OSError(22, "a kernel without them")

    monkeypatch.setattr(store_module.mmap, "mmap", Memory)
    for size, wanted in ((HUGE - 1, []), (HUGE, [mmap.MADV_HUGEPAGE]), (3 * HUGE, [mmap.MADV_HUGEPAGE])):
        asked.clear()
        data = zeros(size)
        assert asked == wanted
        data[:] = 1


def test_zeros_need_no_huge_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system that cannot be asked for them."""
    monkeypatch.delattr(store_module.mmap, "MADV_HUGEPAGE", raising=False)
    data = zeros(HUGE)
    assert not data.any()
    assert data.ctypes.data % 64 == 0


def test_memory_makes_everything() -> None:
    filling = Filling(MemoryStore())
    assert filling.made == 4
    filling.check()


def test_arrays_in_memory_share_large_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Side by side, none over another; what does not fit starts a new piece of the usual size or its own."""
    pieces: list[NDArray[np.uint8]] = []

    def counted(size: int) -> NDArray[np.uint8]:
        pieces.append(zeros(size))
        return pieces[-1]

    monkeypatch.setattr(store_module, "zeros", counted)
    store, arrays = MemoryStore(), []
    arena = 16 << 20
    sizes = [100, 1, 64, arena - 1000, 200, 3 * arena + 5, 70]
    for number, size in enumerate(sizes):

        def fill(out: NDArray[np.uint8], number: int = number) -> None:
            assert not out.any(), "packing adds to zeros"
            out[:] = number + 1

        arrays.append(store.array(str(number), size, fill))
    assert [piece.size for piece in pieces] == [arena, 3 * arena + 64, arena]
    for number, (array, size) in enumerate(zip(arrays, sizes, strict=True)):
        assert array.size == size
        assert array.ctypes.data % 64 == 0
        assert (array == number + 1).all(), number


def test_the_next_start_reads_what_was_made(path: Path) -> None:
    first = Filling(FileStore(path, "f"))
    assert first.made == 4
    first.check()
    second = Filling(FileStore(path, "f"))
    assert second.made == 0
    second.check()
    path.write_bytes(bytes(path.stat().st_size))  # it is a copy: what becomes of the file is not its business
    second.check()
    Filling(FileStore(path, "f"))
    before = path.stat().st_mtime_ns
    Filling(FileStore(path, "f"))
    assert path.stat().st_mtime_ns == before, "a file that serves was written again"


def test_a_file_is_read_to_its_end_however_little_comes_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system reads 2 GiB at most, and less when a signal arrives."""
    Filling(FileStore(path, "f"))

    class Trickle(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            return super().readinto(memoryview(buffer)[:1000]) or 0

    monkeypatch.setattr(Path, "open", lambda self, mode="r", buffering=-1: Trickle(self, mode))
    again = Filling(FileStore(path, "f"))
    monkeypatch.undo()
    assert again.made == 0
    again.check()


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


def test_another_fingerprint_makes_everything_again_and_replaces_the_file(path: Path) -> None:
    Filling(FileStore(path, "f"))
    other = Filling(FileStore(path, "g"), seed=1)
    assert other.made == 4
    other.check(seed=1)
    assert Filling(FileStore(path, "g"), seed=1).made == 0
    assert Filling(FileStore(path, "f")).made == 4


def test_arrays_of_another_size_and_new_ones_are_made_and_join_the_others(path: Path) -> None:
    Filling(FileStore(path, "f"), keys="ab")
    more = Filling(FileStore(path, "f"))
    assert more.made == 2
    more.check()
    again = Filling(FileStore(path, "f"))
    assert again.made == 0
    again.check()
    made = []
    resized = FileStore(path, "f").array("a", 99, made.append)
    assert resized.size == 99
    assert len(made) == 1


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
    again = Filling(FileStore(path, "f"))
    again.check()
    assert again.made == 4
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
    again = Filling(FileStore(path, "f"))
    again.check()
    assert again.made == 4


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


def _start_many(path: Path, fingerprint: str, seed: int, times: int) -> None:
    for _ in range(times):
        Filling(FileStore(path, fingerprint), seed).check(seed)


def test_two_processes_at_once_never_read_each_others_halves(path: Path) -> None:
    """Two models of equal sizes take turns in one file as fast as they can; each always gets its own bytes."""
    others = [
        subprocess.Popen([sys.executable, __file__, str(path), name, str(seed)]) for seed, name in enumerate(("f", "g"))
    ]
    assert [process.wait() for process in others] == [0, 0]
    assert list(path.parent.iterdir()) == [path]


def test_two_threads_at_once(path: Path) -> None:
    """Two engines of one process do not write to the same scratch file."""
    failures: list[BaseException] = []

    def start(name: str, seed: int) -> None:
        try:
            _start_many(path, name, seed, 40)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=start, args=("f", 0)), threading.Thread(target=start, args=("g", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


if __name__ == "__main__":
    _start_many(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), times=60)
