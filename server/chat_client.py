"""A conversation in the terminal over the realtime socket of a running server."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import orjson
from rich.console import Console
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.sync.client import ClientConnection, connect

from paceline.engine.errors import PacelineError

from .address import Address
from .terminal import say_error

LOOK_FOR_CANCEL_S = 0.1


class ChatError(PacelineError):
    """The conversation cannot start, or a reply failed."""


class ConnectionLostError(ChatError):
    """The server is gone, and the conversation with it."""


@dataclass(slots=True)
class ReplyFigures:
    """One reply as the reader saw it; times in seconds since the request was sent."""

    status: str = ""  # "completed", "cancelled", "incomplete" or "failed"
    first_text: float | None = None
    last_text: float | None = None
    tokens: int = 0
    emitted: int = 0
    accepted: int = 0

    @property
    def steps(self) -> int:
        """A step emits what it accepted and one token more, so this also holds when a slow reader got steps merged."""
        return self.emitted - self.accepted

    def describe(self) -> str:
        """One line: time to first token, time per token, accepted guesses per step, tokens."""
        parts = []
        if self.first_text is not None:
            parts.append(f"first token {self.first_text * 1000:.0f} ms")
        if self.first_text is not None and self.last_text is not None and self.tokens > 1:
            parts.append(f"{(self.last_text - self.first_text) * 1000 / (self.tokens - 1):.1f} ms per token")
        if self.steps > 0:
            parts.append(f"{self.accepted / self.steps:.2f} accepted per step")
        parts.append(f"{self.tokens} token{'' if self.tokens == 1 else 's'}")
        if self.status not in ("", "completed"):
            parts.append(self.status)
        return " · ".join(parts)


class Conversation:
    """One realtime session: say something, read the streamed reply. Use it as a context manager."""

    def __init__(
        self,
        url: str,
        *,
        model: str = "default",
        api_key: str | None = None,
        instructions: str | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """Connect. Raises AddressError, and ChatError when no server answers or it refuses key, model or a setting."""
        self._url = url
        self._turns = 0
        session: dict[str, Any] = {"type": "realtime", "output_modalities": ["text"]}
        if instructions:
            session["instructions"] = instructions
        if temperature is not None:
            session["temperature"] = temperature
        if max_tokens is not None:
            session["max_output_tokens"] = max_tokens
        with ExitStack() as opening:
            self._socket = _connect(url, model, api_key, opening)
            self._wait_for("session.created")
            self._send({"type": "session.update", "session": session})
            self._wait_for("session.updated")
            self._open = opening.pop_all()

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def say(
        self, text: str, on_text: Callable[[str], None], cancelled: Callable[[], bool] = lambda: False
    ) -> ReplyFigures:
        """Send one user message and stream the reply to `on_text`; once `cancelled()` is true the reply is cancelled.

        Returns when the server has ended the reply. Raises ChatError when the server reports an error or goes away.
        """
        self._turns += 1
        turn = f"turn_{self._turns}"
        item = {"id": turn, "type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        self._send({"event_id": turn, "type": "conversation.item.create", "item": item})
        self._send({"event_id": turn, "type": "response.create"})
        try:
            return self._read_reply(turn, on_text, cancelled)
        except ConnectionLostError:
            raise
        except ChatError:
            # Or every later reply would fail over the same words.
            self._send({"event_id": "tidy", "type": "conversation.item.delete", "item_id": turn})
            raise

    def _read_reply(self, turn: str, on_text: Callable[[str], None], cancelled: Callable[[], bool]) -> ReplyFigures:
        started = time.perf_counter()
        figures = ReplyFigures()
        asked_to_stop = False
        while True:
            if not asked_to_stop and cancelled():
                asked_to_stop = True
                self._send({"event_id": "stop", "type": "response.cancel"})
            event = self._receive(timeout=LOOK_FOR_CANCEL_S)
            match event:
                case {"type": "response.output_text.delta", "delta": str(delta)}:
                    figures.last_text = time.perf_counter() - started
                    if figures.first_text is None:
                        figures.first_text = figures.last_text
                    counts = event.get("x_spec") or {}
                    figures.emitted += int(counts.get("emitted", 0))
                    figures.accepted += int(counts.get("accepted", 0))
                    on_text(delta)
                case {"type": "response.done", "response": {"status": str(status)} as response}:
                    figures.status = status
                    figures.tokens = int((response.get("usage") or {}).get("output_tokens") or 0)
                    if status == "failed":
                        raise ChatError(_failure(response))
                    return figures
                case {"type": "error", "error": {"event_id": str(cause)}} if cause != turn:
                    pass  # too late to stop, or nothing to tidy: the reply is not touched
                case {"type": "error", "error": error}:
                    raise ChatError(_message(error))

    def _wait_for(self, kind: str) -> None:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            match self._receive(timeout=1.0):
                case {"type": "error", "error": error}:
                    raise ChatError(_message(error))
                case {"type": found} if found == kind:
                    return
        raise ChatError(f"{self._url} sent no {kind} event within 10 s; is it a Paceline server?")

    def _send(self, event: Mapping[str, Any]) -> None:
        try:
            self._socket.send(orjson.dumps(event), text=True)
        except ConnectionClosed as error:
            raise self._gone(error) from error

    def _receive(self, timeout: float) -> dict[str, Any]:
        """The next event, or {} when none came in time."""
        try:
            message = self._socket.recv(timeout)
            event = orjson.loads(message)
        except TimeoutError:
            return {}
        except ConnectionClosed as error:
            raise self._gone(error) from error
        except orjson.JSONDecodeError as error:
            raise ChatError(f"{self._url} sent something that is not JSON; is it a Paceline server?") from error
        return event if isinstance(event, dict) else {}

    def _gone(self, error: ConnectionClosed) -> ConnectionLostError:
        frame = error.rcvd
        reason = f" ({frame.code}{': ' + frame.reason if frame.reason else ''})" if frame is not None else ""
        return ConnectionLostError(f"The server closed the connection{reason}; run `paceline chat` again later.")


def chat(connect_anew: Callable[[], Conversation], out: Console) -> None:
    """Read lines from standard input and print replies until the input ends (Ctrl-D).

    Ctrl-C cancels the reply that is being written; while nothing is, it discards the line. `/new` starts afresh, other
    commands there are none; `//text` says `/text`. After an unknown command or a reply that failed the conversation
    goes on at a terminal; in a pipe the ChatError is raised.
    """
    interactive = sys.stdin.isatty()
    if interactive:
        import readline  # noqa: F401 - gives input() its line editing and history

        out.print("Ctrl-C stops a reply, /new starts afresh, Ctrl-D ends.", style="dim")
    with ExitStack() as open_socket:
        talk = open_socket.enter_context(connect_anew())
        while True:
            try:
                line = input("\n> " if interactive else "").strip()
            except EOFError:
                break
            except KeyboardInterrupt:
                continue
            if line == "/new":
                open_socket.close()
                talk = open_socket.enter_context(connect_anew())
            elif line:
                try:
                    _exchange(talk, _spoken(line), out)
                except ConnectionLostError:
                    raise
                except ChatError as error:
                    if not interactive:
                        raise
                    say_error(str(error))
    if interactive:
        out.print()


def _spoken(line: str) -> str:
    """What a line says to the model. Raises ChatError for a command that does not exist."""
    if line.startswith("/") and not line.startswith("//"):
        raise ChatError(
            f"There is no command {line.split()[0][:40]}; /new starts afresh, and // begins a message with a slash."
        )
    return line.removeprefix("/")


def _exchange(talk: Conversation, line: str, out: Console) -> None:
    with _interrupt() as cancelled:
        figures = talk.say(line, lambda text: out.out(text, end="", highlight=False), cancelled)
    out.print(f"\n{figures.describe()}", style="dim", markup=False)


@contextmanager
def _interrupt() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C into a flag, so that a reply can be cancelled between two events and never in the middle of one."""
    pressed = False

    def remember(_signal: int, _frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


def _connect(url: str, model: str, api_key: str | None, stack: ExitStack) -> ClientConnection:
    """Open a socket that closes with `stack`. Raises ChatError or AddressError."""
    address = Address.parse(url)
    try:
        socket = connect(
            address.realtime(model),
            additional_headers={"Authorization": f"Bearer {api_key}"} if api_key else None,
            proxy=None if address.local else True,
            compression=None,
            max_size=2**24,
            open_timeout=10,
        )
        return stack.enter_context(socket)
    except InvalidStatus as error:
        raise ChatError(_refusal(url, model, error)) from error
    except (OSError, WebSocketException, TimeoutError) as error:
        raise ChatError(
            f"No server answers at {url}; start one in another terminal with `paceline serve` (or `make serve`), or "
            "give the address of one that runs: `paceline chat http://HOST:PORT`."
        ) from error


def _refusal(url: str, model: str, error: InvalidStatus) -> str:
    status = error.response.status_code
    if status in (401, 403):
        return f"{url} refuses the key ({status}); give its key with --api-key or PACELINE_API_KEY."
    try:
        return _message(orjson.loads(error.response.body)["error"])
    except (ValueError, LookupError, TypeError):
        return f"{url} has no realtime socket for model {model!r} (HTTP {status}); is it a Paceline server?"


def _failure(response: Mapping[str, Any]) -> str:
    details = response.get("status_details") or {}
    return _message(details.get("error") or {}) if isinstance(details, dict) else "The reply failed."


def _message(error: Any) -> str:
    return str(error.get("message") or "The reply failed.") if isinstance(error, dict) else str(error)
