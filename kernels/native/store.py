"""Where packed weights live: in memory, and in a file that the next start reads instead of packing again.

Every step reads all of them, and with ordinary pages looking up addresses takes a tenth of it: they live in huge pages
where the system has them, which a mapped file cannot.
"""

from __future__ import annotations

import glob
import json
import mmap
import os
import struct
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Fill = Callable[[NDArray[np.uint8]], None]
_ALIGN = 64  # a cache line: a vector that straddles two costs two reads
_HUGE = 2 << 20
_ARENA = 16 << 20  # bytes taken from the system at once
_VERSION = 3  # of the packed layouts; a file of another version is made anew
_TAIL = struct.Struct("<QQ")  # length of the index, checksum


def zeros(size: int) -> NDArray[np.uint8]:
    """[size] zero bytes that start at a cache line, in huge pages where they are worth it."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    memory = mmap.mmap(-1, size + _HUGE, **private)
    if size >= _HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    data: NDArray[np.uint8] = np.frombuffer(memory, np.uint8)
    start = -data.ctypes.data % _HUGE
    return data[start : start + size]


class Store(Protocol):
    def array(self, key: str, size: int, fill: Fill) -> NDArray[np.uint8]:
        """The bytes called `key`, [size], aligned; made by `fill` from zeros where they are not known yet."""
        ...

    def finish(self) -> None:
        """Everything has been asked for."""
        ...


class MemoryStore:
    """Arrays side by side in a few large pieces of memory."""

    def __init__(self) -> None:
        self._free = np.empty(0, np.uint8)

    def array(self, key: str, size: int, fill: Fill) -> NDArray[np.uint8]:
        taken = -(-size // _ALIGN) * _ALIGN
        if taken > self._free.size:
            self._free = zeros(max(taken, _ARENA))
        data, self._free = self._free[:size], self._free[taken:]
        fill(data)
        return data

    def finish(self) -> None:
        pass


class FileStore:
    """Arrays in one file, found again by `fingerprint`; a file that is damaged or made for something else is replaced.

    The file holds the arrays, an index of them as JSON, and last the index's length and a checksum of all before: it is
    replaced as a whole, so that no reader sees one process's index with another one's bytes. A folder that cannot be
    written only costs time: arrays then stay in memory.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self._path = path
        self._stamp = f"{_VERSION} {fingerprint}"
        self._memory = MemoryStore()
        self._asked: dict[str, NDArray[np.uint8]] = {}
        self._complete = True  # the file holds all that was asked for
        self._index, self._data = self._read()

    def _read(self) -> tuple[dict[str, list[int]], NDArray[np.uint8]]:
        damage = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, struct.error)
        with suppress(*damage), self._path.open("rb", 0) as file:
            end = file.seek(-_TAIL.size, os.SEEK_END)
            length, checksum = _TAIL.unpack(file.read())
            file.seek(max(0, end - length))
            index = json.loads(file.read(min(length, end)))
            inside = all(0 <= start <= start + size <= end for start, size in index["arrays"].values())
            if index["stamp"] == self._stamp and inside:  # else it is not worth reading
                data = zeros(end)
                file.seek(0)
                read = 0
                while count := file.readinto(data[read:].data):  # the system gives at most 2 GiB at once
                    read += count
                if read == end and zlib.crc32(data.data) == checksum:
                    return index["arrays"], data
        return {}, np.empty(0, np.uint8)

    def array(self, key: str, size: int, fill: Fill) -> NDArray[np.uint8]:
        offset, known = self._index.get(key, (0, -1))
        if known == size:
            data = self._data[offset : offset + size]
        else:
            data = self._memory.array(key, size, fill)
            self._complete = False
        self._asked[key] = data
        return data

    def finish(self) -> None:
        """Write what was asked for, unless the file holds it all."""
        asked, self._asked = self._asked, {}
        if self._complete:
            return
        self._complete = True
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._sweep()
            scratch = self._path.with_name(f"{self._path.name}.{os.getpid()}-{threading.get_ident()}")
            try:
                self._write(scratch, asked)
                scratch.replace(self._path)
            finally:
                scratch.unlink(missing_ok=True)

    def _sweep(self) -> None:
        """Remove what processes that were killed while they wrote have left."""
        for leftover in self._path.parent.glob(f"{glob.escape(self._path.name)}.*-*"):
            writer = leftover.name.removeprefix(f"{self._path.name}.").partition("-")[0]
            if writer.isdecimal() and not _alive(int(writer)):
                leftover.unlink(missing_ok=True)

    def _write(self, path: Path, arrays: dict[str, NDArray[np.uint8]]) -> None:
        index: dict[str, list[int]] = {}
        with path.open("wb") as file:
            for key, data in arrays.items():
                file.write(bytes(-file.tell() % _ALIGN))
                index[key] = [file.tell(), data.size]
                file.write(data.data)
            text = json.dumps({"stamp": self._stamp, "arrays": index}).encode()
            file.write(text)
            file.flush()
            file.write(_TAIL.pack(len(text), zlib.crc32(np.memmap(path, np.uint8, "r").data)))


def _alive(process: int) -> bool:
    """Whether a process of this number runs; told by a signal that is never sent, so only where there are such."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
