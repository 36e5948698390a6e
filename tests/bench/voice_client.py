"""One conversation over a WebSocket, as a voice assistant holds it: every event with the time it came."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import websockets
from websockets.asyncio.client import ClientConnection, connect

from paceline.server.bench_report import percentile

Event = dict[str, Any]
PATIENCE_S = 120.0


class ProtocolError(Exception):
    """The server answered with what was not expected."""


@dataclass
class Heard:
    """One reply: times are seconds of time.perf_counter().

    deltas: when each came, and how many tokens it brought. done: the response of its last event.
    """

    asked: float
    deltas: list[tuple[float, int]] = field(default_factory=list)
    first_clause: float | None = None
    text: str = ""
    ended: float = 0.0
    done: Event = field(default_factory=dict)

    @property
    def ttft_ms(self) -> float:
        return (self.deltas[0][0] - self.asked) * 1e3

    @property
    def clause_ms(self) -> float | None:
        return None if self.first_clause is None else (self.first_clause - self.asked) * 1e3

    @property
    def tpot_ms(self) -> float | None:
        """(last delta - first) / (tokens - those of the first, or 1 where nobody says how many it brought)."""
        rest = sum(tokens for _, tokens in self.deltas[1:]) or int(self.usage["output_tokens"]) - 1
        return (self.deltas[-1][0] - self.deltas[0][0]) * 1e3 / rest if rest else None

    @property
    def gaps_ms(self) -> list[float]:
        """Between messages that brought text."""
        return [(b[0] - a[0]) * 1e3 for a, b in zip(self.deltas, self.deltas[1:], strict=False)]

    @property
    def usage(self) -> Event:
        usage: Event = self.done["usage"]
        return usage

    @property
    def recomputed(self) -> int:
        """Tokens of the prompt that were not found in the cache."""
        return int(self.usage["input_tokens"]) - int(self.usage["input_token_details"]["cached_tokens"])


class Socket:
    """A task reads all the time, so that an event's time is when it came."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._events: asyncio.Queue[tuple[float, Event]] = asyncio.Queue()
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for message in self._connection:
                now = time.perf_counter()
                self._events.put_nowait((now, orjson.loads(message)))
        except websockets.ConnectionClosedError:
            pass
        self._events.put_nowait((time.perf_counter(), {"type": "closed"}))

    async def send(self, kind: str, **fields: Any) -> float:
        """Returns when it was sent."""
        data = orjson.dumps({"type": kind, **fields}).decode()
        now = time.perf_counter()
        await self._connection.send(data)
        return now

    async def next(self) -> tuple[float, Event]:
        """Raises ProtocolError for an error event or the end of the connection, TimeoutError for silence."""
        async with asyncio.timeout(PATIENCE_S):
            when, event = await self._events.get()
        if event["type"] in ("error", "closed"):
            raise ProtocolError(str(event.get("error", {}).get("message", "the server closed the socket")))
        return when, event

    async def until(self, kind: str) -> tuple[float, Event]:
        while True:
            when, event = await self.next()
            if event["type"] == kind:
                return when, event

    async def settle(self, quiet_s: float = 0.2) -> None:
        """Take what comes until nothing has come for so long."""
        while True:
            try:
                async with asyncio.timeout(quiet_s):
                    await self._events.get()
            except TimeoutError:
                return

    async def close(self) -> None:
        await self._connection.close()
        await self._reader


class Talk(Socket):
    """A realtime session."""

    async def say(self, text: str, role: str = "user") -> str:
        """Adds a message; returns the item's id."""
        kind = "output_text" if role == "assistant" else "input_text"
        await self.send(
            "conversation.item.create",
            item={"type": "message", "role": role, "content": [{"type": kind, "text": text}]},
        )
        _, event = await self.until("conversation.item.done")
        return str(event["item"]["id"])

    async def ask(self, asked: float | None = None, cancel_after: int | None = None, **response: Any) -> Heard:
        """Asks for a reply and hears it to its end. asked: when the wait for it began, by default now.

        cancel_after: cancels once so many deltas have come; `asked` is then when the cancel was sent.
        """
        sent = await self.send("response.create", response=response)
        heard = Heard(sent if asked is None else asked)
        while True:
            when, event = await self.next()
            match event["type"]:
                case "response.output_text.delta":
                    heard.deltas.append((when, event["x_spec"]["emitted"]))
                    heard.text += event["delta"]
                    if len(heard.deltas) == cancel_after:
                        heard.asked = await self.send("response.cancel", response_id=event["response_id"])
                case "x_response.clause" if heard.first_clause is None:
                    heard.first_clause = when
                case "response.done":
                    heard.ended = when
                    heard.done = event["response"]
                    return heard


class Lane(Socket):
    """The Responses API over a socket."""

    async def ask(self, cancel_after: int | None = None, **request: Any) -> Heard:
        """As `Talk.ask`; deltas of a slow reader aside, one came for each step with text, of tokens nobody counts."""
        heard = Heard(await self.send("response.create", **request))
        while True:
            when, event = await self.next()
            match event["type"]:
                case "response.output_text.delta":
                    heard.deltas.append((when, 0))
                    heard.text += event["delta"]
                    if len(heard.deltas) == cancel_after:
                        heard.asked = await self.send("response.cancel")
                case "response.completed" | "response.incomplete" | "response.failed":
                    heard.ended = when
                    heard.done = event["response"]
                    return heard


@asynccontextmanager
async def talking(url: str) -> AsyncIterator[Talk]:
    """A session that is open. url: the server's, http://…"""
    async with _opened(url, "/v1/realtime") as connection:
        talk = Talk(connection)
        await talk.until("session.created")
        try:
            yield talk
        finally:
            await talk.close()


@asynccontextmanager
async def lane(url: str) -> AsyncIterator[Lane]:
    """A socket of the Responses API that is open."""
    async with _opened(url, "/v1/responses") as connection:
        opened = Lane(connection)
        try:
            yield opened
        finally:
            await opened.close()


def _opened(url: str, path: str) -> connect:
    address = url.replace("http", "ws", 1) + path
    return connect(address, compression=None, max_size=2**24, proxy=None, open_timeout=PATIENCE_S)


def middle(values: Sequence[float | None]) -> float:
    """The median of what there is; 0 for nothing."""
    known = [value for value in values if value is not None]
    return percentile(known, 50) if known else 0.0
