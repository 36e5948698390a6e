"""How far the stages of a training run are: bars on a terminal, lines in a log."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from .terminal import notices

_EVERY_S = 30.0  # between lines where no bar can be drawn


class StageBars:
    """One bar per stage; where none can be drawn, as in a log, a line at its beginning, now and then, and at its end.

    clock: seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}"),
            TimeRemainingColumn(),
        )
        self._console = console
        self._clock = clock
        self._progress = Progress(*columns, console=console)
        self._stages: dict[str, TaskID] = {}
        self._due: dict[str, float] = {}  # when a stage's next line may be printed

    def report(self, stage: str, share: float, note: str = "") -> None:
        if not self._console.is_interactive:
            self._say(stage, share, note)
            return
        if stage not in self._stages:
            self._progress.start()  # not before: an error would stand below an empty line
            self._stages[stage] = self._progress.add_task(stage.capitalize(), total=1.0, note="")
        self._progress.update(self._stages[stage], completed=share, note=note)

    def _say(self, stage: str, share: float, note: str) -> None:
        now, due = self._clock(), self._due.get(stage, -math.inf)
        if due < math.inf and (now >= due or share >= 1):
            self._due[stage] = now + _EVERY_S if share < 1 else math.inf
            self._console.print(f"{stage.capitalize()} {share:.0%}{note and ', '}{note}", markup=False)

    def stop(self) -> None:
        if self._stages:
            self._progress.stop()


@contextmanager
def progress_bars() -> Iterator[StageBars]:
    bars = StageBars(notices())
    try:
        yield bars
    finally:
        bars.stop()
