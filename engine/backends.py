"""Which kernels run the model: those asked for, or the best that can run it here."""

from __future__ import annotations

import logging
from pathlib import Path
from zlib import crc32

from paceline.kernels import backend
from paceline.kernels.backend import Ops

from .config import EngineConfig
from .errors import ConfigError
from .model.checkpoint import Checkpoint
from .model.decoder import cache_shape

_log = logging.getLogger(__name__)

# Option -> the value that asks for nothing, and the backends that have others.
_FORMATS = {
    "weights": ("stored", ("native", "triton")),
    "activations": ("mixed", ("native",)),
    "kv_format": ("auto", ("native", "triton")),
}


def choose_ops(config: EngineConfig, checkpoint: Checkpoint, device: str, cache: Path | None) -> Ops:
    """The backend asked for, or the best that can run this model on the device. Raises ConfigError.

    cache: folder for packed weights, None to keep none.
    """
    best = "native" if device == "cpu" else "triton"
    name = best if config.backend == "auto" else config.backend
    if name == "native" and device != "cpu":
        raise ConfigError("--backend native runs on the CPU; use --device cpu with it, or --backend auto.")
    store = None if cache is None else cache / "packed" / f"{crc32(checkpoint.fingerprint.encode()):08x}.bin"
    options = backend.Options(
        device=device,
        threads=config.threads,
        weights=config.weights,
        activations=config.activations,
        kv=config.kv_format,
        exact=config.exact,
        store=store,
        fingerprint=checkpoint.fingerprint,
    )
    try:
        ops = backend.load(name, options)
        ops.check(cache_shape(checkpoint.config))
    except backend.BackendError as error:
        if config.backend != "auto":
            raise ConfigError(str(error)) from error
        _log.warning("Running on torch's kernels, which are slower. %s", error)
        name = "reference"
        _refuse_foreign(config, name)
        return backend.load(name, options)
    _refuse_foreign(config, name)
    return ops


def _refuse_foreign(config: EngineConfig, name: str) -> None:
    for field, (usual, owners) in _FORMATS.items():
        value = getattr(config, field)
        if value != usual and name not in owners:
            option = field.replace("_", "-")
            raise ConfigError(f"--{option} {value} needs the {' or '.join(owners)} kernels; leave it at {usual} here.")
