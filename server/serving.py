"""Listening, uvicorn, and a shutdown that lets replies finish."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from paceline.engine.errors import ConfigError

from . import connections
from .app import create_app
from .census import Census
from .context import Context, Settings
from .key_file import read_keys
from .lag import probe
from .logs import uvicorn_level
from .service import Service
from .short_slices import ask_for_short_slices
from .tasks import cancel_all

_BACKLOG = 1024
_ENDINGS_S = 1  # after draining: for replies that were cut short to say so


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
    port: int,
    host: str = "127.0.0.1",
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serves until SIGINT or SIGTERM; call it on the main thread.

    The port is taken first, then `build` loads the model (it may block for long), then `on_ready` is called with the
    address to open. On a signal `/ready` turns 503, new work is refused, and replies that run get `settings.drain_s`
    seconds; a second Ctrl-C ends at once.

    Raises ConfigError (port in use, bad host, broken file of keys) or whatever `build` raises.
    """
    _raise_file_limit()
    if settings.keys is not None:
        read_keys(settings.keys)  # again when the model is there: said now, nobody waits for it in vain
    listener = bind(host, port)
    try:
        service = build()
        service.start()
        gc.collect()
        gc.freeze()  # what stays for good is not looked through again: that took 25 ms, in the middle of replies
        try:
            make_server(service, settings, listener, on_ready).run(sockets=[listener])
        finally:
            service.stop()
    finally:
        listener.close()


def _raise_file_limit() -> None:
    """Every connection is an open file, and the usual soft limit is a small part of the hard one."""
    with contextlib.suppress(ImportError, OSError, ValueError):  # not on Windows; not every system allows it
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def make_server(
    service: Service,
    settings: Settings,
    listener: socket.socket,
    on_ready: Callable[[str], None],
) -> Server:
    """The uvicorn server for a started service; run it with `.run(sockets=[listener])`, on any thread."""
    app = create_app(service, settings)

    class Http(connections.Http):
        census = Census(settings.max_connections, settings.max_connections_per_address)
        patience_s = settings.client_patience_s
        request_patience_s = settings.request_patience_s

    class WebSocket(connections.WebSocket):
        patience_s = settings.client_patience_s

    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=Http,
        ws=WebSocket,
        ws_max_size=settings.max_body,
        ws_per_message_deflate=settings.compress,
        lifespan="off",
        log_config=None,
        log_level=uvicorn_level(settings.log_level),
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=connections.LAST_WORDS_S,
    )
    return Server(config, app.state.context, lambda: on_ready(url_of(listener)))


def url_of(listener: socket.socket) -> str:
    """The address to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """uvicorn, which would close every socket on a signal, after a drain."""

    def __init__(self, config: uvicorn.Config, context: Context, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.context = context
        self._on_ready = on_ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal begins the end, a second Ctrl-C skips the waiting. Unlike uvicorn's own, this does not raise
        the signal again afterwards: `serve` returns, and its caller cleans up."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        ask_for_short_slices()
        await super().startup(sockets)
        self._probe = asyncio.create_task(probe(self.context.service.metrics.loop_lag))
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        drain = asyncio.create_task(self.context.drain.wait(self.context.settings.drain_s))
        while not drain.done() and not self.force_exit:
            await asyncio.wait((drain,), timeout=0.1)
        drain.cancel()
        self.context.drain.over = True
        endings = asyncio.create_task(self.context.drain.wait(0.1 if self.force_exit else _ENDINGS_S))
        while not endings.done():
            self.context.service.streams.abort_all()  # again and again: some were only about to begin
            await asyncio.wait((endings,), timeout=0.02)
        await super().shutdown(sockets)
        await cancel_all((self._probe,))
