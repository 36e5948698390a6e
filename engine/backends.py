"""Which kernels run the model: those asked for, or the best that can run it here."""

from __future__ import annotations

import logging
from collections.abc import Sequence
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
_EXACT = ("native", "triton")  # whose rows can have bits that depend on nothing else
_GPU_ONLY = ("bf16", "fp8")  # formats of a cache that the native kernels do not have


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
        if foreign := _foreign(config, "reference"):  # which would take over
            option, otherwise, _ = foreign
            raise ConfigError(f"{option} cannot be had here; {otherwise}. {error}") from error
        _log.warning("Running on torch's kernels, which are slower. %s", error)
        return backend.load("reference", options)
    _log.info("The model runs on the %s kernels, on %s.", name, device)
    if foreign := _foreign(config, name):
        option, otherwise, owners = foreign
        raise ConfigError(f"{option} needs the {' or '.join(owners)} kernels; {otherwise} here.")
    return ops


def _foreign(config: EngineConfig, name: str) -> tuple[str, str, Sequence[str]] | None:
    """(an option as it was given, what to do instead, backends that have it) of one that this backend lacks."""
    for field, (usual, owners) in _FORMATS.items():
        value = getattr(config, field)
        having = ("triton",) if field == "kv_format" and value in _GPU_ONLY else owners
        if value != usual and name not in having:
            return f"--{field.replace('_', '-')} {value}", f"leave it at {usual}", having
    if config.exact and name not in _EXACT:
        return "--exact", "leave it out", _EXACT
    return None
