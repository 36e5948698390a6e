"""What the model sources share: files that appear whole, and how a long fetch tells what it is doing."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

Report = Callable[[str, int, int], None]
"""report(stage, done, total): bytes done of a stage; a total of 0 is unknown."""


def quiet(stage: str, done: int, total: int) -> None:
    """Report nothing."""


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file that readers see whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)  # mkstemp makes it private; a cache may be shared
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def file_fingerprint(paths: Iterable[Path]) -> str:
    """Path, size and time of change of each file: no two states of them share it, short of foul play."""
    states = [(str(path.resolve()), (status := path.stat()).st_size, status.st_mtime_ns) for path in sorted(paths)]
    return hashlib.sha256(repr(states).encode()).hexdigest()
