"""Every backend is held to the same contract: an op's tests run once per backend."""

from __future__ import annotations

import pytest
import torch
from native_ops import eager

from paceline.kernels.backend import BackendError, Ops, load
from paceline.kernels.native import isa


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Caches are each backend's own: tests that build the reference's run on the reference alone."""
    if "ops" in metafunc.fixturenames and "kernels/native" not in metafunc.module.__file__:
        backends = ["reference"] if hasattr(metafunc.module, "TensorCache") else ["reference", "native", "triton"]
        metafunc.parametrize("ops", backends, indirect=True, scope="session")


@pytest.fixture(scope="session")
def ops(request: pytest.FixtureRequest) -> Ops:
    reference = load("reference")
    if request.param == "reference":
        return reference
    if request.param == "triton":
        return interpreted()
    try:
        return eager(isa.load(), reference)
    except isa.NativeUnavailableError as error:
        pytest.skip(str(error))


def interpreted() -> Ops:
    try:
        ops = load("triton")
    except BackendError as error:
        pytest.skip(str(error))
    import interpreter

    interpreter.hasten()
    return ops


@pytest.fixture
def rng() -> torch.Generator:
    """Seeded, so that a failure comes back."""
    return torch.Generator().manual_seed(20)
