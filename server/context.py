"""What one running app knows besides its model: the operator's settings, and whether it is being shut down."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .api_errors import ApiError
from .service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the server meets the outside; the defaults suit one person on one machine."""

    api_keys: tuple[str, ...] = ()  # without these and without a file of keys, everything is open
    keys: Path | None = None  # file of keys with limits, read again when it changes
    allowed_origins: tuple[str, ...] = ()  # browser origins besides the server's own; "*" allows every one
    allowed_hosts: tuple[str, ...] = ()  # Host names besides localhost and plain IP addresses; "*" allows every one
    max_body: int = 2**20  # bytes of one request body
    max_choices: int = 16  # n of one completion
    max_replies: int = 128  # prompts of one text completion, times n
    max_messages: int = 4096  # messages of one request, items of one realtime conversation
    max_conversation: int = 2**20  # characters one realtime conversation may hold, and never more than fit the context
    max_responses: int = 4096  # kept so that later ones can go on from them, for all callers together
    max_responses_size: int = 2**26  # characters of these
    response_lifetime_s: float = 86_400.0  # after which a response is forgotten
    max_headers: int = 100  # header fields of one request
    max_connections: int = 4096  # open at once, sockets included
    max_connections_per_address: int = 1024  # of IPv6 per /64 network: one subscriber usually has a whole one
    max_sockets: int = 1024  # realtime sockets open at once
    max_sockets_per_key: int = 256  # of all kinds
    compress: bool = False  # WebSocket messages; costs each socket memory, and pays on slow networks
    max_outbox: int = 256  # events that may wait for a slow realtime client; then what it sends counts as unanswered
    max_unanswered: int = 2**22  # characters such a client may still send before its socket is closed
    request_patience_s: float = 20.0  # for a request's head to arrive, and as long again for its body
    ping_interval_s: float = 10.0  # silence of an event stream before a comment shows that it lives
    client_patience_s: float = 30.0  # a client that takes nothing for so long while data waits for it is dropped
    resume_s: float = 60.0  # how long after a disconnect a realtime reply that asked for it goes on, and can be resumed
    max_parked: int = 64  # realtime sessions without a socket that wait to be resumed; then the oldest ends
    max_replay_events: int = 4096  # of one reply that are kept to be sent again, the newest
    max_replay: int = 2**20  # bytes of them
    drain_s: float = 20.0  # what running replies get to finish once the server is told to stop
    log_level: str = "warning"  # "debug" and "info" also log each request and each reply


class Drain:
    """Counts what still has something to say, so that a stopping server can wait for it."""

    def __init__(self) -> None:
        self.requested = asyncio.Event()
        self.over = False  # True once whatever still runs must end
        self.busy = 0

    @contextmanager
    def occupied(self) -> Iterator[None]:
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1

    async def wait(self, patience: float) -> bool:
        """Refuses new work from now on; True when everything has ended within `patience` seconds. May be called again,
        to wait longer."""
        self.requested.set()
        end = asyncio.get_running_loop().time() + patience
        while self.busy and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.02)
        return not self.busy


@dataclass(frozen=True, slots=True)
class Context:
    service: Service
    settings: Settings
    drain: Drain = field(default_factory=Drain)

    @property
    def ready(self) -> bool:
        """True when new work is welcome."""
        return self.service.healthy and not self.drain.requested.is_set()

    def refuse_when_draining(self) -> None:
        """Raises ApiError 503."""
        if self.drain.requested.is_set():
            raise ApiError(503, "The server is shutting down; try again in a moment.", code="shutting_down")
