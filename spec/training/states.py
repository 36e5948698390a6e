"""The target's hidden states of all texts, on disk: computed once, read in every epoch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from .dialogues import Dialogue
from .files import write_atomically
from .target import Floats, Teacher, TrainingError

_EVERY = 32_768  # rows between two marks of what is complete: some ten seconds of work
_MOST = 65504.0  # of a float16


@dataclass(frozen=True, slots=True)
class Marker:
    """What a file of hidden states belongs to, and how many of its rows are there."""

    texts: int  # checksum of the tokens
    taps: tuple[int, ...]
    rows: int
    done: int


def hidden_states(
    path: Path,
    texts: Sequence[Dialogue],
    taps: Sequence[int],
    size: int,
    make_teacher: Callable[[Sequence[int]], Teacher],
    report: Callable[[int, int], None],
) -> NDArray[np.float16]:
    """[rows of all texts, T, H] of hidden size H, mapped from `path`; what is missing is computed.

    Beside it lies a marker of what is complete. report: (rows so far, of how many). Raises TrainingError for a file
    that cannot be what it should be, or that there is no room for.
    """
    rows = sum(len(text.tokens) for text in texts)
    shape = (rows, len(taps), size)
    marker = Marker(_checksum(texts), tuple(taps), rows, 0)
    size_in_bytes = 2 * rows * len(taps) * size
    done = _done(path, marker, size_in_bytes)
    if done < rows:
        _reserve(path, size_in_bytes, keep=done > 0)
        states = np.memmap(path, np.float16, "r+", shape=shape)
        teacher = make_teacher(taps)
        at = marked = 0
        for text in texts:
            end = at + len(text.tokens)
            if at >= done:
                states[at:end] = stored(teacher.hidden(text.tokens))
                if end - marked >= _EVERY or end == rows:
                    states.flush()
                    write_atomically(_marker_path(path), _to_json(marker, end))
                    marked = end
                report(end, rows)
            at = end
        del states
    return np.memmap(path, np.float16, "r", shape=shape)


def stored(states: Floats) -> NDArray[np.float16]:
    """States as they are kept, of the same shape: what a float16 cannot hold is its largest value."""
    return np.clip(states, -_MOST, _MOST).astype(np.float16)


def _reserve(path: Path, size: int, *, keep: bool) -> None:
    """A file of `size` bytes on the disk, with what it holds if that is to be kept.

    A mapped file with holes would end the process by a signal when the disk is full. Raises TrainingError.
    """
    try:
        with path.open("r+b" if keep else "w+b") as file:
            if hasattr(os, "posix_fallocate"):  # not on macOS
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
    except OSError as error:
        if not keep:
            with suppress(OSError):
                path.unlink()  # what room there was is not lost
        raise TrainingError(
            f"{path} needs {size:,} bytes ({os.strerror(error.errno or 0)}); make room there, or choose another --out."
        ) from error


def _done(path: Path, expected: Marker, size: int) -> int:
    """Rows that are complete."""
    beside = _marker_path(path)
    if not beside.exists():
        return 0
    damaged = f"{path} and {beside.name} do not belong together, or are damaged; delete both, and they are made again."
    try:
        record = json.loads(beside.read_bytes())
        found = Marker(record["texts"], tuple(record["taps"]), record["rows"], int(record["done"]))
        whole = path.stat().st_size == size
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(damaged) from error
    if (found.texts, found.taps, found.rows) != (expected.texts, expected.taps, expected.rows) or not whole:
        raise TrainingError(damaged)
    return found.done


def _marker_path(path: Path) -> Path:
    return path.with_suffix(".json")


def _to_json(marker: Marker, done: int) -> bytes:
    return json.dumps({"texts": marker.texts, "taps": marker.taps, "rows": marker.rows, "done": done}).encode()


def _checksum(texts: Sequence[Dialogue]) -> int:
    value = 0
    for text in texts:
        value = crc32(np.array(text.tokens, np.int32).tobytes(), value)
    return value
