"""From the engine thread to the event loop: one wake-up per engine step, one receiver per reply."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from types import TracebackType

from paceline.engine.engine import Engine
from paceline.engine.loop import EngineLoop
from paceline.engine.request import Delta, Request


class Stream:
    """The deltas of one reply, which may have several choices, in the order the engine made them.

    An async context manager and iterator: leaving the block, by any way, aborts what still runs, and the engine frees
    it within one step. A reader that stays away costs one Delta per step, at most max_tokens of them per choice.
    """

    def __init__(self, owner: Streams) -> None:
        self._owner = owner
        self._running: set[str] = set()
        self._ready: deque[Delta] = deque()
        self._waiter: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Delta:
        delta = await self.next()
        if delta is None:
            raise StopAsyncIteration
        return delta

    @property
    def ready(self) -> bool:
        """True when `next` returns at once."""
        return bool(self._ready) or not self._running

    async def next(self, patience: float | None = None) -> Delta | None:
        """The next delta, or None when every choice has ended; TimeoutError after `patience` seconds without one."""
        while not self._ready:
            if not self._running:
                return None
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                async with asyncio.timeout(patience):
                    await self._waiter
            finally:
                self._waiter = None
        return self._ready.popleft()

    def add(self, request_id: str) -> None:
        self._running.add(request_id)

    def abort(self) -> None:
        """Ends every choice that still runs and forgets what was not read."""
        for request_id in tuple(self._running):
            self._owner.loop.abort(request_id)
            self._forget(request_id)
        self._ready.clear()
        self._wake()

    def cut(self, request_id: str, kept: int) -> None:
        """Ends one choice after its first `kept` output tokens, which stay in the cache."""
        if request_id in self._running:
            self._owner.loop.cut(request_id, kept)
            self._forget(request_id)
        self._ready = deque(delta for delta in self._ready if delta.request_id != request_id)

    def feed(self, delta: Delta) -> None:
        self._ready.append(delta)
        if delta.finish is not None:
            self._forget(delta.request_id)
        self._wake()

    def _forget(self, request_id: str) -> None:
        self._running.discard(request_id)
        self._owner.closed(request_id)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Streams:
    """Every open Stream by request id, and the engine loop that feeds them; used on the event loop only."""

    def __init__(self, engine: Engine) -> None:
        self.loop = EngineLoop(engine, self._post)
        self._open: dict[str, Stream] = {}
        self._posted: deque[Delta] = deque()  # by the engine, and not fed yet
        self._event_loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._open)

    def open(self, requests: Sequence[Request]) -> Stream:
        """Submits `requests` as one reply: all of them, or, when the engine refuses one, none.

        Raises RequestError (over the context) or OverloadedError (queue full), ValueError for an id that is in use.
        """
        loop = asyncio.get_running_loop()
        if self._event_loop is not loop:
            self._event_loop = loop
            self._posted.clear()  # a loop that is closed feeds nobody any more
        stream = Stream(self)
        try:
            for request in requests:
                if request.id in self._open:
                    raise ValueError(f"a request {request.id!r} is running")
                self.loop.submit(request)
                stream.add(request.id)
                self._open[request.id] = stream
        except BaseException:
            stream.abort()
            raise
        return stream

    def pin(self, owner: str, tokens: Sequence[int]) -> None:
        """Keep what is cached of a conversation between its requests, in place of what was kept for its owner before.

        tokens: ids of the model.
        """
        self.loop.pin(owner, tokens)

    def unpin(self, owner: str) -> None:
        """The conversation is over: what its replies still do has been aborted."""
        self.loop.unpin(owner)

    def abort_all(self) -> None:
        """Ends every reply with a delta that says `abort`."""
        for request_id, stream in tuple(self._open.items()):
            self.loop.abort(request_id)
            stream.feed(Delta(request_id=request_id, tokens=(), finish="abort"))

    def closed(self, request_id: str) -> None:
        self._open.pop(request_id, None)

    def _post(self, deltas: list[Delta]) -> None:
        """On the engine thread, once per step."""
        if self._event_loop is not None:
            with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody is left to read
                self._event_loop.call_soon_threadsafe(self._dispatch, deltas)

    def _dispatch(self, deltas: list[Delta]) -> None:
        idle = not self._posted
        self._posted += deltas
        if idle and deltas:
            self._feed_next()

    def _feed_next(self) -> None:
        """One reply in each turn of the event loop: what else is due need not wait for all of a step's text."""
        delta = self._posted.popleft()
        stream = self._open.get(delta.request_id)
        if stream is not None:
            stream.feed(delta)
        if self._posted:
            assert self._event_loop is not None
            self._event_loop.call_soon(self._feed_next)
