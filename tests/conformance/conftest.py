"""Two small servers, and a client of every protocol for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from drafting_service import drafting_service
from every_protocol import Client
from service import live_server, wait_until_idle
from speaking_model import make_speaking_folder
from templates import TEMPLATES
from tiny_models import make_folder

CONTEXT = 1024


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    """Of a model that says what it is told to, and of one that says anything."""
    folder = tmp_path_factory.mktemp("conformance")
    make_speaking_folder(folder / "speaking" / "model", TEMPLATES["qwen3"], context_length=CONTEXT)
    make_folder(folder / "random" / "model", "smollm2", max_position_embeddings=CONTEXT)
    with ExitStack() as stack:
        clients = {}
        for name in ("speaking", "random"):
            service = drafting_service(folder / name / "model", folder / name)
            service.start()
            stack.callback(service.stop)
            clients[name] = Client(stack.enter_context(live_server(service)))
            stack.callback(clients[name].close)
        yield clients
        for client in clients.values():
            wait_until_idle(client.live.service)
            client.live.service.loop.engine.check()
