"""Every backend is held to the same contract: an op's tests run once per backend."""

from __future__ import annotations

import pytest
import torch

from paceline.kernels.backend import Ops, load


@pytest.fixture(scope="session", params=["reference"])
def ops(request: pytest.FixtureRequest) -> Ops:
    return load(request.param)


@pytest.fixture
def rng() -> torch.Generator:
    """Seeded, so that a failure comes back."""
    return torch.Generator().manual_seed(20)
