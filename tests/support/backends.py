"""Kernel backends, where the machine has them."""

from __future__ import annotations

import pytest

from paceline.kernels.backend import BackendError, Ops, Options, load


def ops_or_skip(name: str) -> Ops:
    """The ops of a backend on one thread; skips the test, with the backend's own reason, where it cannot run."""
    try:
        return load(name, Options(threads=1))
    except BackendError as error:
        pytest.skip(str(error))
