"""The real service over a tiny random model, inside this process, with or without a socket in front."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient
from tiny_models import make_folder

from paceline.engine.config import EngineConfig
from paceline.server.app import create_app
from paceline.server.context import Context, Settings
from paceline.server.service import Service
from paceline.server.serving import Server, bind, make_server, url_of

MODEL_ID = "tiny"
HOST = "http://localhost"
SOCKET = "ws://localhost/v1/realtime"  # the test client has another host of its own for sockets
ENDLESS = {"logit_bias": {"2": -100}}  # the end token never comes: the context is the only end


def build_service(folder: Path, *, context_length: int = 256, **options: int | str) -> Service:
    """A service that was not started; `options` go to EngineConfig."""
    model = make_folder(folder / "model", "smollm2", max_position_embeddings=context_length)
    config = EngineConfig(device="cpu", threads=1, **options)  # type: ignore[arg-type]
    return Service.build(model, folder / "cache", config, MODEL_ID)


@contextmanager
def running_service(folder: Path, *, context_length: int = 256, **options: int | str) -> Iterator[Service]:
    """Started and stopped; at the end the cache must balance, hold nothing and keep nothing for anybody."""
    service = build_service(folder, context_length=context_length, **options)
    service.start()
    try:
        yield service
        wait_until(lambda: service.loop.stats().blocks_held == service.loop.stats().blocks_pinned == 0)
    finally:
        service.stop()
    service.loop.engine.check()


@contextmanager
def client_of(service: Service, settings: Settings | None = None) -> Iterator[TestClient]:
    """In-process HTTP and WebSocket without a network."""
    with TestClient(create_app(service, settings), base_url=HOST, raise_server_exceptions=False) as client:
        yield client


class LiveServer:
    """uvicorn on a free loopback port, in a thread."""

    def __init__(self, service: Service, settings: Settings, small_buffers: bool) -> None:
        self._listener = bind("127.0.0.1", 0)
        if small_buffers:  # accepted sockets inherit it: a client that does not read is felt at once
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self._up = threading.Event()
        self.service = service
        self.url = url_of(self._listener)
        self.port = int(self.url.rpartition(":")[2])
        self.server: Server = make_server(service, settings, self._listener, lambda url: self._up.set())
        self.context: Context = self.server.context
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self._listener]})

    def start(self) -> None:
        self._thread.start()
        assert self._up.wait(30)

    def stop(self) -> None:
        """What a signal does; returns at once."""
        self.server.should_exit = True

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


@contextmanager
def live_server(
    service: Service, settings: Settings | None = None, *, small_buffers: bool = False
) -> Iterator[LiveServer]:
    server = LiveServer(service, settings or Settings(), small_buffers)
    server.start()
    try:
        yield server
    finally:
        server.stop()
        server.join()


@contextmanager
def running_server(
    folder: Path,
    settings: Settings | None = None,
    *,
    small_buffers: bool = False,
    context_length: int = 256,
    **options: int | str,
) -> Iterator[LiveServer]:
    """A service of its own behind uvicorn, for tests that stop it or let clients misbehave."""
    with (
        running_service(folder, context_length=context_length, **options) as service,
        live_server(service, settings, small_buffers=small_buffers) as server,
    ):
        yield server


def wait_until(condition: Callable[[], bool], patience_s: float = 20.0) -> None:
    """Fails when `condition` does not come true; the patience is no measurement, only an end."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.005)


def is_idle(service: Service) -> bool:
    """Nothing runs, waits or holds a block, and no command is on its way to the engine."""
    stats = service.loop.stats()
    return service.loop._inbox.empty() and stats.running == stats.waiting == stats.blocks_held == 0


def wait_for_tokens(service: Service, count: int) -> None:
    """Until the engine has made so many tokens, for all replies together."""
    wait_until(lambda: service.loop.stats().generated_tokens >= count)


def wait_until_idle(service: Service) -> None:
    wait_until(lambda: is_idle(service))
