"""The engine's thread, and what waits for its deltas."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fakes import Replies

from paceline.engine.engine import Engine
from paceline.engine.loop import EngineLoop
from paceline.engine.request import Delta

PATIENCE_S = 60.0  # no measurement, only an end


class Inbox(Replies):
    """Deltas as they come, to wait for."""

    def __init__(self) -> None:
        super().__init__()
        self._arrived = threading.Condition()

    def __call__(self, deltas: list[Delta]) -> None:
        with self._arrived:
            super().__call__(deltas)
            self._arrived.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._arrived:
            assert self._arrived.wait_for(condition, PATIENCE_S), "it did not come"

    def wait_for_finish(self, *request_ids: str) -> None:
        self.wait(lambda: all(name in self.deltas and self.finish(name) for name in request_ids))

    def wait_for_tokens(self, request_id: str, count: int) -> None:
        self.wait(lambda: len(self.tokens(request_id)) >= count)


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.001)


@contextmanager
def running(engine: Engine, post: Callable[[list[Delta]], None]) -> Iterator[EngineLoop]:
    loop = EngineLoop(engine, post)
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()


def is_idle(loop: EngineLoop) -> bool:
    stats = loop.stats()
    return stats.running == stats.waiting == stats.blocks_held == 0


def in_threads(*tasks: Callable[[], None]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
