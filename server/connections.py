"""uvicorn's connections, with patience that ends and last words that arrive."""

from __future__ import annotations

import asyncio
import sys
from asyncio import TimerHandle
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import h11
import orjson
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from .api_errors import ApiError
from .census import Census

LINGER_S = 10  # a client that was told to go may take so long to hear it: it counts as gone and still holds a socket
LAST_WORDS_S = 2  # after draining: for answers and close frames that are on their way
_DISMISSED_S = 1  # a client that was refused may take so long to hear why
_WRITE_BUFFER = 32 * 1024  # bytes that may wait in user space for one slow client; the kernel holds more


class Patient:
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


class Http(Patient, H11Protocol):
    """Closes a connection whose next request does not arrive whole, headers and all, within `request_patience_s`.

    uvicorn's own keep-alive time runs only after an answer and ends with the next byte, so that silent and dripping
    clients could hold every file the process may open. Bodies have a limit of their own, in `read_body`.
    """

    census: Census
    request_patience_s: float
    _deadline: TimerHandle | None = None
    _upgraded = False
    _place: str | None = None  # in the census
    _dismissed = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        try:
            self._place = self.census.enter(self.client[0] if self.client else "")
        except ApiError as error:
            self._dismiss(error)
            return
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        if not self._dismissed:
            super().data_received(data)
            self._expect_request()

    def send_400_response(self, msg: str) -> None:
        """What h11 could not read, in the shape of all refusals."""
        problem = sys.exception()
        if isinstance(problem, h11.RemoteProtocolError) and problem.error_status_hint == 431:
            self._dismiss(ApiError(431, "The request's head is too large; send less.", code="headers_too_large"))
        else:
            self._dismiss(ApiError(400, "This is no valid HTTP request; send HTTP/1.1.", code="invalid_http"))

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        super().handle_websocket_upgrade(event)
        self._upgraded = True
        self.transport.get_protocol().leave = self._leave

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_expecting()
        if not self._upgraded:
            self._leave()
        super().connection_lost(exc)

    def _leave(self) -> None:
        if self._place is not None:
            self.census.leave(self._place)
            self._place = None

    def _dismiss(self, error: ApiError) -> None:
        """Says why, whatever was sent, and drops what still comes: to close at once would reset the connection, and
        the reset can overtake the answer."""
        self._dismissed = True
        self._stop_expecting()
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            if self.cycle.response_started:
                self.transport.close()
                return
        body = orjson.dumps(error.body())
        fields = {
            **error.headers,
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
        }
        lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", *(": ".join(f) for f in fields.items())]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.write_eof()
        self._deadline = asyncio.get_running_loop().call_later(_DISMISSED_S, self.transport.abort)

    def _expect_request(self) -> None:
        if self._dismissed or self._upgraded or (self.cycle is not None and not self.cycle.response_complete):
            self._stop_expecting()
        elif self._deadline is None:
            self._deadline = asyncio.get_running_loop().call_later(self.request_patience_s, self.transport.close)

    def _stop_expecting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class WebSocket(Patient, WebSocketsSansIOProtocol):
    """uvicorn's, without an error in the log for what clients do, and with a close frame that arrives."""

    leave: Callable[[], None]  # tells that the connection is gone
    _parting = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.leave()
        super().connection_lost(exc)

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.close" and self.handshake_complete and not self.close_sent:
            if not self.transport.is_closing():
                self.conn.send_close(message.get("code", 1000), message.get("reason") or "")
                self._part()
            return
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # a refusal ends the handshake too, which uvicorn forgets

    def data_received(self, data: bytes) -> None:
        if not self._parting:
            super().data_received(data)

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
        if not self.close_sent:
            self._part()

    def handle_ping(self) -> None:
        if not self._parting:  # one can come in the same packet as what made the server part
            super().handle_ping()

    def shutdown(self) -> None:
        if self.close_timer is None:
            super().shutdown()
        else:
            self._part_within(LAST_WORDS_S / 2)

    def _part(self) -> None:
        """Says why, ends the sending side, and reads to the client's end without keeping anything, for a while.

        uvicorn first waits until the client has read what is under way, or closes at once. Whatever the client still
        sends then makes the system reset the connection, and a reset can overtake the close frame (RFC 6455 section
        7.1.1; RFC 1122 section 4.2.2.13). The frame is one, and short: it may wait in user space with the rest.
        """
        self._parting = self.close_sent = True
        closing = self.conn.close_sent
        assert closing is not None
        self.queue.put_nowait({"type": "websocket.disconnect", "code": closing.code, "reason": closing.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.write_eof()
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self._part_within(min(self.patience_s, LINGER_S))

    def _part_within(self, seconds: float) -> None:
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(seconds, self.transport.abort)
