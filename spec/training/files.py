"""A run's folder: its settings, and files that are whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from .target import TrainingError

SETTINGS = "run.json"
WORK = "work"  # what is only needed until the run ends
REPORT = "report.json"


def write_atomically(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(content)
    temporary.replace(path)


@contextmanager
def run_folder(folder: Path, settings: Mapping[str, object]) -> Iterator[Path]:
    """Hold the folder of a run with these settings: a new one, or one to go on in. Yields where its work lies.

    Raises TrainingError for a folder that holds something else, a run with other settings or one in progress, or that
    cannot be written.
    """
    work = folder / WORK
    try:
        if folder.exists() and not (folder / SETTINGS).exists() and any(path.name != WORK for path in folder.iterdir()):
            raise TrainingError(f"{folder} holds other files and no training run; choose another --out.")
        work.mkdir(parents=True, exist_ok=True)
        lock = FileLock(work / "lock", timeout=0)
        with lock:
            _agree(folder, settings)
            yield work
    except Timeout:
        raise TrainingError(f"Another process trains in {folder} right now; wait for it, or stop it.") from None
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        raise TrainingError(
            f"{error.filename or folder} cannot be written ({os.strerror(error.errno or 0)}); choose another --out."
        ) from error


def _agree(folder: Path, settings: Mapping[str, object]) -> None:
    path = folder / SETTINGS
    wanted = json.loads(json.dumps(settings))
    if not path.exists():
        write_atomically(path, json.dumps(wanted, indent=1).encode())
        return
    try:
        found = json.loads(path.read_bytes())
        # An option that is not in the file was not given; what else is not in it was not recorded yet.
        known = {key for key in wanted if key.startswith("--")} | found.keys()
        differing = [key for key in {**found, **wanted} if key in known and found.get(key) != wanted.get(key)]
    except (ValueError, TypeError, AttributeError) as error:
        raise TrainingError(f"{path} is damaged; delete {folder}, or choose another --out.") from error
    if differing:
        said = ", ".join(f"{key} {found.get(key)} instead of {wanted.get(key)}" for key in differing)
        raise TrainingError(
            f"{folder} holds a run with other settings ({said}); repeat those to go on, or choose another --out."
        )
