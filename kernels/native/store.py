"""Where packed weights live: in memory, or in a file that the next start maps instead of packing again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Fill = Callable[[NDArray[np.uint8]], None]
_ALIGN = 64  # a cache line: a vector that straddles two costs two reads
_VERSION = 1  # of the packed layouts; a file of another version is made anew


def aligned_zeros(size: int) -> NDArray[np.uint8]:
    """[size] zero bytes that start at a cache line."""
    memory = np.zeros(size + _ALIGN, np.uint8)
    start = -memory.ctypes.data % _ALIGN
    return memory[start : start + size]


class Store(Protocol):
    def array(self, key: str, size: int, fill: Fill) -> NDArray[np.uint8]:
        """The bytes called `key`, [size], aligned; made by `fill` from zeros where they are not known yet."""
        ...

    def finish(self) -> None:
        """Everything has been asked for."""
        ...


class MemoryStore:
    def array(self, key: str, size: int, fill: Fill) -> NDArray[np.uint8]:
        data = aligned_zeros(size)
        fill(data)
        return data

    def finish(self) -> None:
        pass


class FileStore:
    """Arrays in one file, found again by `fingerprint`; a file that is damaged or made for something else is replaced.

    A folder that cannot be written only costs time: arrays then stay in memory.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._index_path = path.with_suffix(".json")
        self._stamp = f"{_VERSION} {fingerprint}"
        self._memory = MemoryStore()
        self._made: dict[str, NDArray[np.uint8]] = {}
        self._index, self._map = self._open()

    def _open(self) -> tuple[dict[str, list[int]], NDArray[np.uint8] | None]:
        with suppress(OSError, ValueError, KeyError, TypeError):
            index = json.loads(self._index_path.read_bytes())
            if index["stamp"] == self._stamp and self._path.stat().st_size == index["size"]:
                return index["arrays"], np.memmap(self._path, np.uint8, "r")
        return {}, None

    def array(self, key: str, size: int, fill: Fill) -> NDArray[np.uint8]:
        offset, known = self._index.get(key, (0, -1))
        if self._map is not None and known == size:
            return self._map[offset : offset + size]
        data = self._made[key] = self._memory.array(key, size, fill)
        return data

    def finish(self) -> None:
        """Write what was made; the index last, so that it never speaks of bytes that are not there."""
        made, self._made = self._made, {}
        if not made:
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._index_path.unlink(missing_ok=True)
            scratch = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            index: dict[str, list[int]] = {}
            try:
                with scratch.open("wb") as file:
                    for key, data in made.items():
                        file.write(bytes(-file.tell() % _ALIGN))
                        index[key] = [file.tell(), data.size]
                        file.write(data.data)
                    size = file.tell()
                scratch.replace(self._path)
            finally:
                scratch.unlink(missing_ok=True)
            text = json.dumps({"stamp": self._stamp, "size": size, "arrays": index})
            scratch.write_text(text)
            scratch.replace(self._index_path)
