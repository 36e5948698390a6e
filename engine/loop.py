"""The engine's thread: it alone touches the engine; everyone else leaves commands in its inbox."""

from __future__ import annotations

import dataclasses
import logging
import queue
import threading
from collections.abc import Callable, Sequence

from .engine import Engine, Post
from .errors import OverloadedError
from .request import Request
from .telemetry import EngineStats

_log = logging.getLogger(__name__)
_BROKEN_STEP = "The engine failed on this step and the reply cannot be continued; send the request again."


class EngineLoop:
    """Runs steps while there is work and sleeps while there is none.

    `post` receives all deltas of a step at once, on the engine thread; it must not block.
    """

    def __init__(self, engine: Engine, post: Post) -> None:
        self.engine = engine
        self._post = post
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="paceline-engine", daemon=True)
        self._stopping = False
        self._submitting = threading.Lock()
        self._submitted = 0  # requests in the inbox
        self._ended = False

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the current step, end the thread; unfinished sequences are abandoned."""
        self._stopping = True
        self._inbox.put(lambda: None)
        if self._thread.is_alive():
            self._thread.join()

    def submit(self, request: Request) -> None:
        """Queue a request. Raises RequestError or OverloadedError, and then nothing was queued."""
        with self._submitting:  # of two threads that see the last free place, one gets it
            if self._ended:
                raise OverloadedError("The engine has stopped; restart the server.")
            self.engine.validate(request, queued=self._submitted)
            self._submitted += 1
        self._inbox.put(lambda: self._enqueue(request))

    def abort(self, request_id: str) -> None:
        """Drop the sequence before the next step; a delta of the step under way may still be posted."""
        self._inbox.put(lambda: self.engine.abort(request_id))

    def cut(self, request_id: str, kept: int) -> None:
        """End the reply after its first `kept` tokens, before the next step."""
        self._inbox.put(lambda: self.engine.cut(request_id, kept))

    def pin(self, owner: str, tokens: Sequence[int]) -> None:
        """Keep what is cached of these tokens for the owner, as `Engine.pin` says; done before the next step."""
        known = tuple(tokens)
        self._inbox.put(lambda: self.engine.pin(owner, known))

    def unpin(self, owner: str) -> None:
        """Keep nothing for the owner any more. Requests that pin for it have ended or been aborted before."""
        self._inbox.put(lambda: self.engine.unpin(owner))

    def stats(self) -> EngineStats:
        stats = self.engine.stats()
        return dataclasses.replace(stats, stuck=stats.stuck or not self._thread.is_alive())

    def _enqueue(self, request: Request) -> None:
        with self._submitting:
            self._submitted -= 1
            self.engine.enqueue(request)

    def _run(self) -> None:
        try:
            while not self._stopping:
                try:
                    self._take_commands(wait=not self.engine.has_work)
                    self.engine.step(self._post)
                except Exception:
                    _log.exception("a step failed; its sequences end with an error")
                    self._fail()
        finally:
            with self._submitting:
                self._ended = True

    def _fail(self) -> None:
        try:
            self.engine.fail(_BROKEN_STEP, self._post)
        except Exception:  # a broken reader must not end the thread that serves the others
            _log.exception("the error could not be told to every reader")

    def _take_commands(self, wait: bool) -> None:
        """Carry out what is in the inbox; `wait` for something to be there."""
        while True:
            try:
                command = self._inbox.get(block=wait)
            except queue.Empty:
                return
            self.engine.telemetry.progress()
            command()
            wait = False
