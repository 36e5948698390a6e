"""Whether the Triton kernels can run here and, where they cannot, what to do about it.

Each `…_problem` is told facts and gives a sentence for a person, or None: all can be tested without a GPU.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple

import torch

from ..backend import BackendError
from ..kv_cache import CacheShape

_HEAD_STEP, _HEAD_MOST = 16, 256  # head sizes: what a tile of `tl.dot` needs, and what registers hold
_OLDEST = (8, 0)  # Ampere: bfloat16 in tensor cores, asynchronous copies
_OLDEST_FP8 = (8, 9)  # Ada: conversion to float8_e4m3fn

_NO_TRITON = (
    "The Triton kernels need triton, which is not installed; install torch's CUDA build, which brings it, or run "
    "pip install triton in the environment that Paceline runs in."
)


class Start(NamedTuple):
    """How torch began to use the GPU.

    version: torch's. cuda, hip: of the toolkit it was built with, "13.0", or None. driver: the newest CUDA that the
    driver supports, 12040 for 12.4, 0 without a driver. failure: what was raised, "" when all went well.
    """

    version: str
    cuda: str | None
    hip: str | None
    driver: int
    failure: str


class GPU(NamedTuple):
    """capability: (9, 0) for Hopper; AMD's is a number of another kind. amd: torch was built for ROCm."""

    name: str
    capability: tuple[int, int]
    amd: bool


def device_problem(device: torch.device, *, interpreted: bool) -> str | None:
    """interpreted: Triton runs kernels on the host, one program after the other, as tests do."""
    if interpreted and device.type != "cpu":
        return "TRITON_INTERPRET=1 makes the Triton kernels run on the CPU; unset it, or choose --device cpu."
    if not interpreted and device.type != "cuda":
        return (
            f"The Triton kernels run on a GPU, not on {device.type}; choose --device cuda, or --backend native for "
            "the CPU."
        )
    return None


def start_problem(start: Start) -> str | None:
    if not start.failure:
        return None
    if start.cuda is None and start.hip is None:
        return (
            f"torch {start.version} was built without CUDA; install its CUDA build from "
            "https://pytorch.org/get-started/locally, or choose --device cpu."
        )
    smi, hide = ("rocm-smi", "HIP_VISIBLE_DEVICES") if start.cuda is None else ("nvidia-smi", "CUDA_VISIBLE_DEVICES")
    if start.cuda is not None:
        if not start.driver:
            return f"There is no working NVIDIA driver; install one ({smi} then lists the GPU), or choose --device cpu."
        newest = f"{start.driver // 1000}.{start.driver % 1000 // 10}"
        too_old = "driver" in start.failure and "too old" in start.failure
        # Within one major version an older driver will do.
        if too_old or start.driver // 1000 < int(start.cuda.split(".")[0]):
            return (
                f"The NVIDIA driver supports CUDA {newest} at most and torch was built for CUDA {start.cuda}; update "
                f"the driver, or install a torch that was built for CUDA {newest} or older."
            )
    reason = start.failure.splitlines()[0].rstrip(". ")
    return (
        f"torch cannot use a GPU here ({reason}); see that {smi} lists one and that {hide} does not hide it, or choose "
        "--device cpu."
    )


def gpu_problem(gpu: GPU) -> str | None:
    if not gpu.amd and gpu.capability < _OLDEST:
        return (
            f"The {gpu.name} has compute capability {_dotted(gpu.capability)} and the Triton kernels need "
            f"{_dotted(_OLDEST)} (Ampere) or newer; choose --device cpu."
        )
    return None


def build_problem(failure: str) -> str | None:
    """failure: of building what launches kernels, which triton does with the machine's own C compiler."""
    if not failure:
        return None
    reason = failure.splitlines()[0].rstrip(". ")
    return (
        f"Triton could not compile what launches its kernels ({reason[:160]}); install a C compiler and Python's "
        "headers, as apt install gcc python3-dev does on Debian, or choose --device cpu."
    )


def model_problem(shape: CacheShape, form: str, gpu: GPU | None) -> str | None:
    """form: of the cache. gpu: None where kernels are interpreted."""
    if shape.head_dim % _HEAD_STEP or not 0 < shape.head_dim <= _HEAD_MOST:
        return (
            f"The Triton kernels need a head size that is a multiple of {_HEAD_STEP} up to {_HEAD_MOST}, this model's "
            f"is {shape.head_dim}; use --backend reference."
        )
    if form == "fp8" and gpu is not None and (gpu.amd or gpu.capability < _OLDEST_FP8):
        return (
            f"A cache in fp8 needs an NVIDIA GPU of compute capability {_dotted(_OLDEST_FP8)} (Ada) or newer, which "
            f"the {gpu.name} is not; choose --kv-format int8."
        )
    return None


def cuda_problem() -> str | None:
    """What keeps torch from using a GPU here; torch begins to use it where nothing does."""
    return start_problem(_start())


def check_machine(device: str) -> torch.device:
    """The device for tensors and kernels: "cuda", "cuda:1", or "cpu" where kernels are interpreted.

    Raises BackendError where no kernel can run.
    """
    wanted = torch.device(device)
    try:
        from triton import knobs  # late: a machine without it is told so here
    except ImportError as error:
        _refuse(device_problem(wanted, interpreted=False))  # first what triton alone would not mend
        _refuse(cuda_problem())
        raise BackendError(_NO_TRITON) from error
    _refuse(device_problem(wanted, interpreted=knobs.runtime.interpret))
    if wanted.type == "cuda":
        _refuse(cuda_problem())
        _refuse(gpu_problem(_gpu(wanted)))
        _refuse(build_problem(_built()))
    return wanted


def check_model(shape: CacheShape, form: str) -> None:
    """Raises BackendError for a model or a cache format that the kernels do not fit, after `check_machine`."""
    # Interpreted, nothing has touched a GPU, be there one or not.
    in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    gpu = _gpu(torch.device("cuda")) if in_use else None
    _refuse(model_problem(shape, form, gpu))


def free_memory(device: torch.device) -> int | None:
    """Bytes; None where the device shares the host's memory."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None


def _refuse(problem: str | None) -> None:
    if problem is not None:
        raise BackendError(problem)


def _start() -> Start:
    failure = ""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except (RuntimeError, AssertionError) as error:  # the latter from a torch without CUDA
        failure = str(error) or type(error).__name__
    driver = 0
    version: Any = getattr(torch._C, "_cuda_getDriverVersion", None)  # missing in a torch without CUDA
    if version is not None and torch.version.hip is None:
        with suppress(RuntimeError):
            driver = version()
    return Start(torch.__version__, torch.version.cuda, torch.version.hip, driver, failure)


def _built() -> str:
    """What was raised when triton made ready to launch kernels, "" when it could. In its cache from the second time."""
    from triton.runtime import driver

    try:
        driver.active.get_current_target()
    except Exception as error:  # a compiler that is missing, or fails, or a library that does
        return str(error) or type(error).__name__
    return ""


def _gpu(device: torch.device) -> GPU:
    return GPU(
        torch.cuda.get_device_name(device), torch.cuda.get_device_capability(device), torch.version.hip is not None
    )


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
