"""Cases run in several processes: one that breaks its process, or what the device knows of it, takes no other along."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from threading import local
from typing import Any

from device_tools import Check

# The checks of a case, and whether its process is good for another one.
Run = Callable[[str], tuple[list[Check], bool]]


class _Worker:
    """A process of its own; a process that has used CUDA cannot be forked."""

    def __init__(self, run: Run) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, run), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, name: str, patience_s: float) -> tuple[list[Check], bool]:
        """Raises TimeoutError, or EOFError or OSError where the process has ended."""
        self._pipe.send(name)
        if not self._pipe.poll(max(patience_s, 0.0)):
            raise TimeoutError
        done: tuple[list[Check], bool] = self._pipe.recv()
        return done

    def end(self) -> None:
        self._process.kill()  # a kernel may never end
        self._process.join()


def _serve(pipe: Connection, run: Run) -> None:
    usable = True
    while usable:
        done = run(pipe.recv())
        usable = done[1]
        pipe.send(done)


def in_processes(run: Run, names: Sequence[str], processes: int, patience_s: float) -> Iterator[Check]:
    """The checks of all cases in order; of one that broke its process or took too long, one that failed."""
    until = time.monotonic() + patience_s
    mine: Any = local()
    workers: list[_Worker] = []

    def case(name: str) -> list[Check]:
        worker: _Worker | None = getattr(mine, "worker", None)
        try:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if worker is None:
                worker = _Worker(run)
                workers.append(worker)
            checks, usable = worker.run(name, left)
        except (EOFError, OSError) as error:  # TimeoutError is an OSError
            checks, usable = [Check(name, "", float("nan"), 0, type(error).__name__)], False
        if worker is not None and not usable:
            worker.end()
            worker = None
        mine.worker = worker
        return checks

    threads = ThreadPoolExecutor(processes)
    try:
        for checks in threads.map(case, names):
            yield from checks
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.end()
