"""Listening, uvicorn, and a shutdown that lets replies finish."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
from asyncio import TimerHandle
from collections.abc import Callable
from types import FrameType
from typing import Any

import h11
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
_ENDINGS_S = 1  # after draining: for replies that were cut short to say so
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
    port: int,
    host: str = "127.0.0.1",
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serves until SIGINT or SIGTERM; call it on the main thread.

    The port is taken first, then `build` loads the model (it may block for long), then `on_ready` is called with the
    address to open. On a signal `/ready` turns 503, new work is refused, and replies that run get `settings.drain_s`
    seconds; a second Ctrl-C ends at once.

    Raises ConfigError (port in use, bad host) or whatever `build` raises.
    """
    _raise_file_limit()
    listener = bind(host, port)
    try:
        service = build()
        service.start()
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
    access_log = settings.log_level in ("debug", "info")

    class Http(_Http):
        patience_s = settings.client_patience_s
        request_patience_s = settings.request_patience_s

    class WebSocket(_WebSocket):
        patience_s = settings.client_patience_s

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
        log_level="info" if access_log else settings.log_level,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_LAST_WORDS_S,
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
        await super().startup(sockets)
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


class _Http(_Patient, H11Protocol):
    """Closes a connection whose next request does not arrive whole, headers and all, within `request_patience_s`.

    uvicorn's own keep-alive time runs only after an answer and ends with the next byte, so that silent and dripping
    clients could hold every file the process may open. Bodies have a limit of their own, in `read_body`.
    """

    request_patience_s: float
    _deadline: TimerHandle | None = None
    _upgraded = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_request()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        super().handle_websocket_upgrade(event)
        self._upgraded = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_expecting()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        if self._upgraded or (self.cycle is not None and not self.cycle.response_complete):
            self._stop_expecting()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(self.request_patience_s, self.transport.close)

    def _stop_expecting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _WebSocket(_Patient, WebSocketsSansIOProtocol):
    """uvicorn's, without an error in the log for what clients do, and with a close frame that arrives."""

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # a refusal ends the handshake too, which uvicorn forgets

    def send_receive_event_to_app(self) -> None:
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self.conn.fail(1007, "Text frames must be UTF-8.")
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    def handle_parser_exception(self) -> None:
        """Says why, ends the sending side, and reads to the client's end without keeping anything.

        uvicorn closes at once. Whatever the client has still under way then makes the system reset the connection, and
        a reset can overtake the close frame (RFC 6455 section 7.1.1; RFC 1122 section 4.2.2.13).
        """
        if self.close_sent:
            return
        self.close_sent = True
        closing = self.conn.close_sent
        assert closing is not None
        self.queue.put_nowait({"type": "websocket.disconnect", "code": closing.code, "reason": closing.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.write_eof()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.close)
