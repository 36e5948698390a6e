"""Which compiled module this machine runs."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

PREFERENCE = ("avx512", "avx2", "generic")  # best first
VARIABLE = "PACELINE_ISA"
ABI = 4  # of the compiled modules; raised with every change of what they take or give


class NativeUnavailableError(Exception):
    """No native module can run here; the text says why and what to do."""


def _module(isa: str) -> ModuleType:
    try:
        module = importlib.import_module(f"._ops_{isa}", __package__)
    except ImportError as error:
        raise NativeUnavailableError(
            f"The native kernels{'' if isa == 'generic' else f' for {isa}'} are not compiled; "
            "install a C++ compiler (g++ or clang), then run `pip install -e .` again."
        ) from error
    if getattr(module, "ABI", None) != ABI:
        raise NativeUnavailableError(
            f"The native kernels for {isa} were built from another version of Paceline; install Paceline again."
        )
    return module


def supported() -> tuple[str, ...]:
    """Instruction sets this processor has, best first. Raises NativeUnavailableError where nothing is built."""
    features = _module("generic").features()
    return tuple(isa for isa in PREFERENCE if isa in features)


def load(isa: str | None = None) -> ModuleType:
    """The compiled module for `isa`, for PACELINE_ISA, or for the best set that is both supported and built.

    Raises NativeUnavailableError for one that is asked for and cannot run, or when none can.
    """
    wanted = isa or os.environ.get(VARIABLE)
    available = supported()
    if wanted:
        if wanted not in PREFERENCE:
            raise NativeUnavailableError(
                f"{VARIABLE} is {wanted!r}; choose one of {', '.join(PREFERENCE)}, or leave it unset."
            )
        if wanted not in available:
            raise NativeUnavailableError(
                f"{VARIABLE} asks for {wanted}, but this processor supports only {', '.join(available)}."
            )
        return _module(wanted)
    for candidate in available[:-1]:
        try:
            return _module(candidate)
        except NativeUnavailableError:
            continue  # not built: the compiler that was there is too old for it
    return _module("generic")
