"""A store of packed weights that is asked for everything, and what had to be made for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.kernels.native.store import FileStore, MemoryStore

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


def expect_made(path: Path, made: int) -> None:
    """A start with the file at `path` has everything right, and makes so many arrays."""
    again = Filling(FileStore(path, "f"))
    assert again.made == made
    again.check()


def start_many(path: Path, fingerprint: str, seed: int, times: int) -> None:
    for _ in range(times):
        Filling(FileStore(path, fingerprint), seed).check(seed)


if __name__ == "__main__":  # as one of several processes that share a file
    start_many(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), times=60)
