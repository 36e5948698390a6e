"""Native tests run once per instruction set that this processor has."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from paceline.kernels.native import isa


@pytest.fixture(scope="session", params=isa.PREFERENCE)
def module(request: pytest.FixtureRequest) -> ModuleType:
    try:
        return isa.load(request.param)
    except isa.NativeUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def pool(module: ModuleType) -> Any:
    """One thread: what a test needs that is not about threads."""
    return module.Pool(1)


@pytest.fixture(scope="session")
def pools(module: ModuleType) -> dict[int, Any]:
    """Pools of 1, 2 and 3 threads."""
    return {threads: module.Pool(threads) for threads in (1, 2, 3)}
