"""Packed weights are found again at the next start, and never taken from a file that is not theirs."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from packed_files import Filling, expect_made

from paceline.kernels.native import store as store_module
from paceline.kernels.native.store import FileStore, MemoryStore, zeros

HUGE = 2 << 20


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
    expect_made(path, 0)
    made = []
    resized = FileStore(path, "f").array("a", 99, made.append)
    assert resized.size == 99
    assert len(made) == 1
