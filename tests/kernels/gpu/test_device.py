from __future__ import annotations

import sys

import pytest
import torch

from paceline.kernels.backend import BackendError, Options, load
from paceline.kernels.gpu import device
from paceline.kernels.gpu.device import GPU, Start
from paceline.kernels.kv_cache import CacheShape

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
TURING = GPU("Tesla T4", (7, 5), amd=False)
AMPERE = GPU("NVIDIA A100", (8, 0), amd=False)
ADA = GPU("NVIDIA L4", (8, 9), amd=False)
HOPPER = GPU("NVIDIA H200", (9, 0), amd=False)
MI300 = GPU("AMD Instinct MI300X", (9, 4), amd=True)
OLD_DRIVER = "The NVIDIA driver on your system is too old (found version 12040).\nPlease update"
NO_GPU = "No CUDA GPUs are available."


def test_kernels_run_on_a_gpu_or_are_interpreted() -> None:
    assert device.device_problem(CUDA, interpreted=False) is None
    assert device.device_problem(CPU, interpreted=True) is None
    assert "unset it, or choose --device cpu" in str(device.device_problem(CUDA, interpreted=True))
    for other in ("cpu", "mps"):
        problem = device.device_problem(torch.device(other), interpreted=False)
        assert f"not on {other}; choose --device cuda" in str(problem)


@pytest.mark.parametrize(
    "start",
    [
        Start("2.11", "13.0", None, 12040, ""),
        Start("2.11", None, "7.0", 0, ""),
        Start("2.11", "12.8", None, 12040, ""),
    ],
)
def test_what_works_is_never_refused(start: Start) -> None:
    assert device.start_problem(start) is None


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (Start("2.11+cpu", None, None, 0, "Torch not compiled with CUDA enabled"), "2.11+cpu was built without CUDA"),
        (Start("2.11", "13.0", None, 0, "Found no NVIDIA driver on your system."), "no working NVIDIA driver"),
        (Start("2.11", "13.0", None, 12040, OLD_DRIVER), "CUDA 12.4 at most and torch was built for CUDA 13.0"),
        (Start("2.11", "12.8", None, 12040, OLD_DRIVER), "CUDA 12.4 at most and torch was built for CUDA 12.8"),
        (Start("2.11", "13.0", None, 12040, "CUDA unknown error"), "built for CUDA 12.4 or older"),
        (Start("2.11", "12.8", None, 12040, NO_GPU), "(No CUDA GPUs are available); see that nvidia-smi"),
        (
            Start("2.11", None, "7.0", 0, "No HIP GPUs are available\nmore"),
            "No HIP GPUs are available); see that rocm",
        ),
    ],
)
def test_what_failed_is_said_in_one_sentence(start: Start, said: str) -> None:
    problem = device.start_problem(start)
    assert problem is not None
    assert said in problem
    assert "\n" not in problem
    assert problem.endswith(".")


def test_old_gpus_are_refused() -> None:
    assert "Tesla T4 has compute capability 7.5" in str(device.gpu_problem(TURING))
    assert not any(map(device.gpu_problem, (AMPERE, ADA, HOPPER, MI300)))


def test_a_machine_without_a_compiler_is_told_what_to_install() -> None:
    assert device.build_problem("") is None
    problem = str(device.build_problem("Failed to find C compiler. Please specify via CC environment variable.\nMore"))
    assert "could not compile what launches its kernels (Failed to find C compiler." in problem
    assert "\n" not in problem


@pytest.mark.parametrize("gpu", [None, AMPERE, HOPPER, MI300])
def test_head_sizes(gpu: GPU | None) -> None:
    fitting = [size for size in range(300) if device.model_problem(CacheShape(1, 1, size), "auto", gpu) is None]
    assert fitting == list(range(16, 257, 16))
    assert "is 72; use --backend reference" in str(device.model_problem(CacheShape(1, 1, 72), "auto", gpu))


def test_fp8_needs_hardware_that_converts() -> None:
    shape = CacheShape(1, 1, 64)
    for gpu in (None, ADA, HOPPER):
        assert device.model_problem(shape, "fp8", gpu) is None
    for gpu in (AMPERE, MI300):
        assert device.model_problem(shape, "int8", gpu) is None
        assert f"which the {gpu.name} is not; choose --kv-format int8" in str(device.model_problem(shape, "fp8", gpu))


def test_a_machine_without_triton_is_told_how_to_get_it_once_a_gpu_can_be_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(BackendError, match=r"The Triton kernels run on a GPU, not on cpu"):
        load("triton", Options(device="cpu"))
    monkeypatch.setattr(device, "cuda_problem", lambda: "No driver is here.")
    with pytest.raises(BackendError, match=r"^No driver is here\.$"):
        load("triton", Options(device="cuda"))
    monkeypatch.setattr(device, "cuda_problem", lambda: None)
    with pytest.raises(BackendError, match=r"needs? triton, which is not installed; .* run pip install triton"):
        load("triton", Options(device="cuda"))


def test_the_interpreter_runs_on_the_cpu() -> None:
    assert device.check_machine("cpu") == CPU
    assert device.free_memory(CPU) is None
    with pytest.raises(BackendError, match="TRITON_INTERPRET"):
        device.check_machine("cuda")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_machine_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from triton import knobs

    monkeypatch.setattr(knobs.runtime, "interpret", False)
    with pytest.raises(BackendError, match="choose --device cpu"):
        device.check_machine("cuda")
    with pytest.raises(BackendError, match="--backend native"):
        device.check_machine("cpu")


def test_models_are_checked_where_no_gpu_is_in_use() -> None:
    device.check_model(CacheShape(2, 3, 64), "fp8")
    with pytest.raises(BackendError, match="multiple of 16"):
        device.check_model(CacheShape(2, 3, 8), "auto")
