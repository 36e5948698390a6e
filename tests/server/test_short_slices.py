from __future__ import annotations

import ctypes
import os
import platform
import sys
import threading
from collections.abc import Iterator

import pytest

from paceline.server.short_slices import ask_for_short_slices


@pytest.fixture(autouse=True)
def _same_interval() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


def in_a_thread() -> bool:
    """What it asks for holds for a thread: this one is gone afterwards."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(ask_for_short_slices()))
    thread.start()
    thread.join()
    return found[0]


def test_threads_take_shorter_turns() -> None:
    granted = in_a_thread()
    assert sys.getswitchinterval() == pytest.approx(0.001)
    if sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64"):
        assert granted  # older systems take it too, and do without
    else:
        assert not granted


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is asked for")
def test_a_thread_that_was_made_to_wait_for_others_still_does() -> None:
    found: list[int] = []

    def nice() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, 5)  # on Linux of this thread alone
        ask_for_short_slices()
        found.append(os.getpriority(os.PRIO_PROCESS, 0))

    thread = threading.Thread(target=nice)
    thread.start()
    thread.join()
    assert found == [5]


@pytest.mark.parametrize("machine", ["riscv64", ""])
def test_other_machines_do_without(monkeypatch: pytest.MonkeyPatch, machine: str) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert not in_a_thread()


def test_a_c_library_without_system_calls_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert not in_a_thread()
