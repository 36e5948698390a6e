"""One server for the programs of examples/: a tiny model with room for a conversation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service import LiveServer, running_server


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with running_server(tmp_path_factory.mktemp("examples"), context_length=2048) as server:
        yield server
