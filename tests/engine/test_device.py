"""The device that was asked for, or the best there is; torch is asked only where its answer is open."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from paceline.engine import device
from paceline.engine.device import choose_device
from paceline.engine.errors import ConfigError
from paceline.kernels.gpu import device as kernels_device


def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, driver: bool, gpu: bool) -> None:
    """One with the files of a driver or without, on which torch sees a GPU or none."""
    path = tmp_path / "nvidiactl"
    if driver:
        path.touch()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(device, "_DRIVERS", (str(tmp_path / "other"), str(path)))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"auto, cpu or cuda, got 'tpu'\.$"):
        choose_device("tpu")


@pytest.mark.parametrize("driver", [False, True])
def test_cuda_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, driver: bool) -> None:
    machine(monkeypatch, tmp_path, driver=driver, gpu=False)
    for problem, said in (
        (None, r"no CUDA device; use --device cpu or auto\.$"),  # torch itself finds nothing amiss
        ("The driver is too old; update it.", r"^The driver is too old; update it\.$"),
    ):
        monkeypatch.setattr(kernels_device, "cuda_problem", lambda problem=problem: problem)
        with pytest.raises(ConfigError, match=said):
            choose_device("cuda")


@pytest.mark.parametrize(
    ("name", "driver", "gpu", "chosen"),
    [
        ("auto", False, False, "cpu"),
        ("auto", True, False, "cpu"),
        ("auto", True, True, "cuda"),
        ("cpu", True, True, "cpu"),
        ("cpu", False, False, "cpu"),
        ("cuda", True, True, "cuda"),
        ("cuda", False, True, "cuda"),  # asked for by name, torch has the last word
    ],
)
def test_the_device_is_the_one_asked_for_or_the_best(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, driver: bool, gpu: bool, chosen: str
) -> None:
    machine(monkeypatch, tmp_path, driver=driver, gpu=gpu)
    assert choose_device(name) == chosen


@pytest.mark.parametrize(("platform", "chosen"), [("darwin", "cpu"), ("win32", "cuda")])
def test_elsewhere_only_torch_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, chosen: str
) -> None:
    machine(monkeypatch, tmp_path, driver=False, gpu=True)
    monkeypatch.setattr(sys, "platform", platform)
    assert choose_device("auto") == chosen


@pytest.mark.parametrize("name", ["auto", "cpu"])
def test_torch_stays_out_where_there_is_no_driver(name: str) -> None:
    code = (
        "import sys; from paceline.engine import device; device._DRIVERS = (); sys.platform = 'linux'; "
        f"assert device.choose_device({name!r}) == 'cpu'; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
