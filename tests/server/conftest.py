"""One small real service for the tests that only talk to it; tests that break or stop one make their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from service import LiveServer, client_of, live_server, running_service
from starlette.testclient import TestClient

from paceline.server.service import Service


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Started; nothing may be left running in it at the end."""
    with running_service(tmp_path_factory.mktemp("service"), context_length=256) as service:
        yield service


@pytest.fixture
def client(service: Service) -> Iterator[TestClient]:
    with client_of(service) as client:
        yield client


@pytest.fixture(scope="session")
def live(service: Service) -> Iterator[LiveServer]:
    """The same service behind uvicorn on a loopback port."""
    with live_server(service) as server:
        yield server
