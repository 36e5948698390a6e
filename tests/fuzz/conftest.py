"""One small server for all that is thrown at it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service import LiveServer, live_server, running_service


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """At the end nothing may be left running in it."""
    with (
        running_service(tmp_path_factory.mktemp("fuzz"), context_length=160) as service,
        live_server(service) as server,
    ):
        yield server
