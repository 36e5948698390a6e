"""Where the model runs: the device a user asked for, or the best one there is."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from .errors import ConfigError

_log = logging.getLogger(__name__)

# What a driver that torch can use makes: NVIDIA's, AMD's, and the GPU of a Windows host under WSL.
_DRIVERS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")


def choose_device(name: str) -> str:
    """ "cpu" or "cuda". Raises ConfigError for an unknown device, or for CUDA where there is none."""
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device must be auto, cpu or cuda, got {name!r}.")
    if name == "cuda" and not _torch_sees_cuda():
        raise ConfigError(_what_keeps_cuda())
    if name == "auto":
        if not _has_driver():
            return "cpu"
        if _torch_sees_cuda():
            return "cuda"
        if sys.platform == "linux":  # elsewhere nothing says that there is a GPU at all
            _log.warning("A GPU's driver is here, and yet the model runs on the CPU. %s", _what_keeps_cuda())
        return "cpu"
    return name


def _has_driver() -> bool:
    """Asked first: torch's answer costs its import, 1.6 s of a start, and most machines without a GPU have none."""
    if sys.platform == "linux":
        return any(Path(driver).exists() for driver in _DRIVERS)
    return sys.platform != "darwin"  # no CUDA there; elsewhere only torch knows


def _torch_sees_cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _what_keeps_cuda() -> str:
    from paceline.kernels.gpu.device import cuda_problem

    return cuda_problem() or "--device cuda was asked for, but torch sees no CUDA device; use --device cpu or auto."
