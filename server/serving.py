"""Listening, uvicorn, and a shutdown that lets replies finish."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
from asyncio import TimerHandle
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from paceline.engine.errors import ConfigError

from .app import create_app
from .context import Context, Settings
from .service import Service

_BACKLOG = 1024
_WRITE_BUFFER = 32 * 1024  # bytes that may wait in user space for one slow client; the kernel holds more
_LAST_WORDS_S = 2  # after draining: for answers and close frames that are on their way


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; connections wait in it until the server runs. Port 0 takes a free one.

    Raises ConfigError when the port is taken or the address cannot be used.
    """
    try:
        if not 0 <= port <= 65535:  # getaddrinfo would wrap it around
            raise OverflowError
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, OverflowError, UnicodeError):
        raise ConfigError(
            f"The address {host!r} with port {port} cannot be used; choose others with --host and --port."
        ) from None
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)  # at once: two servers could both bind, and only one of them listen
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            reason = f"Port {port} on {host} is already in use; stop the program that has it, or choose another"
        elif error.errno == errno.EACCES:
            reason = f"Port {port} needs administrator rights; choose one above 1023"
        else:
            reason = f"Cannot listen on {host} ({error.strerror}); choose another --host, or another port"
        raise ConfigError(f"{reason} with --port.") from None
    listener.setblocking(False)
    return listener


def serve(
    build: Callable[[], Service],
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    drain_s: float = 20.0,
    client_patience_s: float = 30.0,
    access_log: bool = False,
    log_level: str = "warning",
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serves until SIGINT or SIGTERM; call it on the main thread.

    The port is taken first, then `build` loads the model (it may block for long), then `on_ready` is called with the
    address to open. On a signal `/ready` turns 503, new work is refused, and replies that run get `drain_s` seconds;
    a second Ctrl-C ends at once. A client that takes nothing for `client_patience_s` seconds is dropped.

    Raises ConfigError (port in use, bad host) or whatever `build` raises.
    """
    listener = bind(host, port)
    try:
        service = build()
        service.start()
        try:
            make_server(
                service,
                settings,
                listener,
                drain_s=drain_s,
                client_patience_s=client_patience_s,
                access_log=access_log,
                log_level=log_level,
                on_ready=on_ready,
            ).run(sockets=[listener])
        finally:
            service.stop()
    finally:
        listener.close()


def make_server(
    service: Service,
    settings: Settings,
    listener: socket.socket,
    *,
    drain_s: float = 20.0,
    client_patience_s: float = 30.0,
    access_log: bool = False,
    log_level: str = "warning",
    on_ready: Callable[[str], None] = lambda url: None,
) -> Server:
    """The uvicorn server for a started service; run it with `.run(sockets=[listener])`, on any thread."""
    app = create_app(service, settings)

    class Http(_Patient, H11Protocol):
        patience_s = client_patience_s

    class WebSocket(_Patient, WebSocketsSansIOProtocol):
        patience_s = client_patience_s

    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=Http,
        ws=WebSocket,
        ws_max_size=settings.max_body,
        ws_per_message_deflate=False,
        lifespan="off",
        access_log=access_log,
        log_config=LOGGING_CONFIG,
        log_level="info" if access_log else log_level,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_LAST_WORDS_S,
    )
    return Server(config, app.state.context, drain_s, lambda: on_ready(url_of(listener)))


def url_of(listener: socket.socket) -> str:
    """The address to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """uvicorn, which would close every socket on a signal, after a drain."""

    def __init__(self, config: uvicorn.Config, context: Context, drain_s: float, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.context = context
        self._drain_s = drain_s
        self._on_ready = on_ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal begins the end, a second Ctrl-C skips the waiting. Unlike uvicorn's own, this does not raise
        the signal again afterwards: `serve` returns, and its caller cleans up."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        drain = asyncio.create_task(self.context.drain.wait(self._drain_s))
        while not drain.done() and not self.force_exit:
            await asyncio.wait((drain,), timeout=0.1)
        drain.cancel()
        await super().shutdown(sockets)


class _Patient:
    """Drops the connection of a client that takes nothing for `patience_s` seconds while data waits for it.

    Without this a reader that never reads would hold its reply, its socket and a place in the batch for ever.
    """

    patience_s: float
    _patience: TimerHandle | None = None
    _waiting_bytes = 0
    transport: Any

    def connection_made(self, transport: Any) -> None:  # uvloop's are no asyncio.Transport
        transport.set_write_buffer_limits(high=_WRITE_BUFFER)
        super().connection_made(transport)  # type: ignore[misc]

    def pause_writing(self) -> None:
        super().pause_writing()  # type: ignore[misc]
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()  # type: ignore[misc]
        self._stop_watching()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)  # type: ignore[misc]

    def _watch(self) -> None:
        self._stop_watching()
        self._waiting_bytes = self.transport.get_write_buffer_size()
        self._patience = asyncio.get_running_loop().call_later(self.patience_s, self._look)

    def _look(self) -> None:
        if self.transport.get_write_buffer_size() >= self._waiting_bytes:
            self.transport.abort()
        else:
            self._watch()

    def _stop_watching(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
