"""One measured reply over SSE from any OpenAI-compatible server: what arrived, and when.

Times are in seconds on a monotonic clock that starts when the request is sent. Paceline's extensions are used when the
server sends them (`metrics.speculative_decoding` on the last chunk) and never needed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
import orjson

from paceline.engine.errors import PacelineError

from .address import Address

TokenSource = Literal["usage", "chunks"]


class BenchError(PacelineError):
    """The server cannot be measured at all: no answer, a refused key, no model."""


@dataclass(frozen=True, slots=True)
class SpeculationFigures:
    """How one reply was decoded, as the server reports it."""

    steps: int
    drafted: int
    accepted: int


@dataclass(slots=True, kw_only=True)
class Reply:
    """One request and what came back.

    `ttft` is the time of the first text, `end` the time of the last chunk that carries a choice, `gaps` the times
    between chunks with text. `error` is a sentence when the request failed.
    """

    prompt_id: str = ""
    category: str = ""
    turn: int = 0
    speculation: str = ""
    concurrency: int = 1
    ttft: float | None = None
    end: float | None = None
    gaps: list[float] = field(default_factory=list)
    text: str = ""
    tokens: int = 0
    tokens_from: TokenSource = "chunks"
    prompt_tokens: int = 0
    cached_tokens: int = 0
    finish: str | None = None
    figures: SpeculationFigures | None = None
    error: str | None = None

    @property
    def tpot(self) -> float | None:
        """Time per output token after the first, (E2E - TTFT) / (n - 1), in seconds; None for fewer than two tokens."""
        if self.ttft is None or self.end is None or self.tokens < 2:
            return None
        return (self.end - self.ttft) / (self.tokens - 1)


class SSEParser:
    """Bytes in, event data out: the `data` fields of server-sent events (WHATWG HTML, section 9.2).

    It splits at line feeds only. A splitter of text lines would also split at U+2028, which JSON may hold as it is.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that `chunk` completes, in order."""
        events: list[bytes] = []
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for raw in lines:
            line = raw.removesuffix(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data.clear()
        return events


class Client:
    """An async client of one server; use it as a context manager."""

    def __init__(self, url: str, *, api_key: str | None = None, timeout: float = 600.0) -> None:
        """Raises AddressError."""
        address = Address.parse(url)
        self.root = address.api
        self._timeout = timeout
        self._headers = {"authorization": f"Bearer {api_key}"} if api_key else {}
        # A proxy from the environment cannot reach this machine's own addresses.
        self._trust_env = not address.local

    async def __aenter__(self) -> Client:
        self._http = aiohttp.ClientSession(
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, connect=10.0),
            # A connection each: some servers close theirs after a reply and say so too late for the next request.
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            trust_env=self._trust_env,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def first_model(self) -> str:
        """The id of the first model the server lists; "default" where it lists none. Raises BenchError."""
        try:
            async with asyncio.timeout(min(self._timeout, 30.0)), self._http.get(f"{self.root}/models") as response:
                status, body = response.status, await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise BenchError(
                f"No server answers at {self.root} ({_reason(error)}); start one with `paceline serve` or correct the "
                "address."
            ) from error
        if status in (401, 403):
            raise BenchError(f"{self.root} refuses the key ({status}); give its key with --api-key.")
        try:
            return str(orjson.loads(body)["data"][0]["id"])
        except (ValueError, LookupError, TypeError):
            return "default"

    async def ask(
        self,
        messages: Sequence[Mapping[str, Any]],
        settings: Mapping[str, Any],
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> Reply:
        """Stream one reply; a failure is recorded in `Reply.error` and never raised."""
        reply = Reply()
        body = {
            "messages": list(messages),
            **settings,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        try:
            async with asyncio.timeout(self._timeout):
                await self._stream(body, reply, clock)
        except aiohttp.ClientError as error:  # first: its own timeouts are TimeoutErrors too
            reply.error = f"connection failed: {_reason(error)}"
        except TimeoutError:
            reply.error = f"no end of the reply within {self._timeout:g} s"
        if reply.error is None and reply.end is None:
            reply.error = "the reply held no choice"
        return reply

    async def _stream(self, body: Mapping[str, Any], reply: Reply, clock: Callable[[], float]) -> None:
        started = clock()
        request = self._http.post(
            f"{self.root}/chat/completions",
            data=orjson.dumps(body),
            headers={"content-type": "application/json"},
        )
        parser = SSEParser()
        chunks = 0
        last_text: float | None = None
        usage: Mapping[str, Any] | None = None
        async with request as response:
            if response.status != 200:
                reply.error = f"HTTP {response.status}: {_error_message(await response.read())}"
                return
            async for data in response.content.iter_any():
                now = clock() - started
                for event in parser.feed(data):
                    if event == b"[DONE]":
                        continue
                    chunk = _object(event)
                    if chunk is None:
                        reply.error = "the stream held an event that is not a JSON object"
                        return
                    if chunk.get("error"):
                        reply.error = _error_message(event)
                        return
                    usage = chunk.get("usage") or usage
                    reply.figures = _figures(chunk) or reply.figures
                    for choice in chunk.get("choices") or ():
                        reply.end = now
                        reply.finish = choice.get("finish_reason") or reply.finish
                        text = _text(choice.get("delta") or {})
                        if not text:
                            continue
                        chunks += 1
                        reply.text += text
                        if last_text is None:
                            reply.ttft = now
                        else:
                            reply.gaps.append(now - last_text)
                        last_text = now
        reply.tokens = chunks
        if usage is not None and usage.get("completion_tokens") is not None:
            reply.tokens, reply.tokens_from = int(usage["completion_tokens"]), "usage"
            reply.prompt_tokens = int(usage.get("prompt_tokens") or 0)
            reply.cached_tokens = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0)


def _object(event: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(event)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _text(delta: Mapping[str, Any]) -> str:
    return str(delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning") or "")


def _figures(chunk: Mapping[str, Any]) -> SpeculationFigures | None:
    match chunk.get("metrics"):
        case {
            "speculative_decoding": {
                "num_spec_steps": int(steps),
                "num_draft_tokens": int(drafted),
                "num_accepted_draft_tokens": int(accepted),
            }
        }:
            return SpeculationFigures(steps, drafted, accepted)
    return None


def _error_message(body: bytes) -> str:
    try:
        error = orjson.loads(body)["error"]
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, TypeError):
        return body.decode(errors="replace").strip()[:200] or "no message"


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__
