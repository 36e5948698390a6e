"""Prompts made ready while their user still writes: what the next prompt is sure to begin with is computed ahead."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from paceline.engine.errors import PacelineError
from paceline.engine.request import Request, SamplingParams
from paceline.kernels.paging import BLOCK_SIZE

from .caller import Caller
from .fields import JsonObject
from .service import Service
from .session_outputs import Warm
from .shared_heads import common_length
from .tasks import cancel_all

_REST = 4.0  # times what finding took, until it is done again: many appends a second take a fifth of a core
_LAST_WORD = re.compile(r"\s*\S{0,16}\Z")  # with the space before it: what may become another word, and so other tokens
_LONGEST_WORD = 32  # characters that are looked at for it
_ENDINGS = ("", "a", " a", ".")  # how a text may go on
_UNSAMPLED = SamplingParams(max_tokens=1, seed=0)

_log = logging.getLogger("paceline.server")

Report = Callable[[Warm, int, int, int], None]
"""Of a Warm: tokens of its prompt, how many of them are sure to come, and how many of those are in the cache."""


def continuations(warm: Warm) -> list[list[JsonObject]]:
    """Conversations the next prompt may be made of, as different from each other as they can become.

    What the prompts of all of them begin with is sure to come, whatever the chat template does and however words
    become tokens. The first one is the conversation as it stands.
    """

    def with_user(text: str) -> list[JsonObject]:
        return [*warm.messages, {"role": "user", "content": text}]

    if warm.pending is not None:
        text = warm.pending
        word = _LAST_WORD.search(text, max(0, len(text) - _LONGEST_WORD))
        head = text if word is None else text[: word.start()]
        other = "a" if text[len(head) :].startswith(".") else "."
        return [with_user(text + ending) for ending in _ENDINGS] + [with_user(head + other)]
    asked = [warm.messages] if warm.messages[-1]["role"] in ("user", "tool") else []
    return asked + [with_user(text) for text in ("a", "1")]


@dataclass(frozen=True, slots=True)
class _Found:
    """tokens: of the prompt as it stands. stable: what it is sure to begin with."""

    warm: Warm
    tokens: int
    stable: tuple[int, ...]

    @property
    def full(self) -> tuple[int, ...]:
        """The full blocks: no other tokens stay in the cache."""
        return self.stable[: len(self.stable) // BLOCK_SIZE * BLOCK_SIZE]


class Warming:
    """What is computed ahead for one session. Used on the event loop only; nothing of it ever fails a client.

    The newest Warm holds. One prefill runs at a time, behind everybody's replies; one that a newer Warm goes on from
    is left to finish, any other one ends at once, and what it has computed stays to be found.
    """

    def __init__(self, service: Service, caller: Caller, owner: str, report: Report) -> None:
        """caller: who pays for it. owner: for whom the blocks are kept. report: told once a Warm is ready."""
        self._service = service
        self._caller = caller
        self._owner = owner
        self._report = report
        self._wanted: Warm | None = None
        self._changed = asyncio.Event()
        self._numbers = itertools.count(1)
        self._done: tuple[int, ...] = ()  # the last tokens that were computed ahead
        self._running: tuple[_Found, asyncio.Task[None]] | None = None
        self._next: _Found | None = None  # once the running one has finished
        self._finder = asyncio.create_task(self._find())

    def want(self, warm: Warm) -> None:
        """Returns at once."""
        self._wanted = warm
        self._changed.set()

    def rest(self) -> None:
        """A reply begins, and computes its prompt itself: nothing more is computed ahead until the next `want`."""
        self._wanted = self._next = None
        if self._running is not None:
            self._running[1].cancel()

    async def close(self) -> None:
        """Nothing runs on afterwards, and no blocks are kept."""
        self.rest()
        running = () if self._running is None else (self._running[1],)
        try:
            await cancel_all((self._finder, *running))
        finally:
            self._service.streams.unpin(self._owner)

    async def _find(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            started = time.perf_counter()
            if (warm := self._wanted) is not None:
                try:
                    prompts = await self._service.prompts_ahead(continuations(warm), warm.parameters)
                except Exception:
                    _log.exception("A prompt could not be made ahead")
                    continue
                if prompts and self._wanted is not None:  # no reply has begun meanwhile
                    self._prepare(_Found(warm, len(prompts[0]), prompts[0][: common_length(prompts)]))
            await asyncio.sleep(_REST * (time.perf_counter() - started))

    def _prepare(self, found: _Found) -> None:
        if self._running is None:
            self._start(found)
            return
        running, task = self._running
        self._next = found
        if found.full[: len(running.full)] != running.full:
            task.cancel()

    def _start(self, found: _Found) -> None:
        task = asyncio.create_task(self._compute(found))
        self._running = (found, task)
        task.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._running = None
        found, self._next = self._next, None
        if found is not None:
            self._start(found)

    async def _compute(self, found: _Found) -> None:
        if self._done[: len(found.full)] != found.full:
            if self._service.loop.stats().waiting:
                return  # others wait for the engine: this is no time to work ahead
            request = Request(
                id=f"{self._owner}-ahead-{next(self._numbers)}",
                prompt=found.full,
                sampling=_UNSAMPLED,
                priority="background",
                prefill_only=True,
                pin=self._owner,
            )
            # What is new since the last time, about as much as is computed: known for sure only at the end.
            expected = len(found.full) - common_length((self._done, found.full))
            try:
                self._caller.check()  # of a key that has used up what it may, nothing is computed ahead
                async with self._service.streams.open([request]) as stream:
                    self._caller.spend(expected)  # at once, so that leaving early is not free
                    deltas = [delta async for delta in stream]
            except PacelineError:
                return  # there is no place for it
            if deltas[-1].finish != "prefilled":
                return
            self._caller.spend(len(found.full) - deltas[-1].cached_tokens - expected)
            self._done = found.full
        self._report(found.warm, found.tokens, len(found.stable), len(found.full))
