"""What the commands share on a terminal: the consoles, the progress bar of a fetch, and one-sentence errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


def output() -> Console:
    """The console for results: standard output."""
    return Console(highlight=False, soft_wrap=True)


def notices() -> Console:
    """The console for progress and errors: standard error, so that results can be piped."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def say_error(message: str) -> None:
    """Print one error sentence; its text is never read as markup."""
    console = notices()
    console.print("paceline:", style="bold red", end=" ")
    console.print(message, markup=False)


@contextmanager
def fetch_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a `report(stage, done, total)` callback that draws one bar per stage, in bytes.

    A stage of unknown size (total <= 0) shows a moving bar. Nothing is drawn when nothing is reported, so a model that
    is already in the cache costs no line.
    """
    progress: Progress | None = None
    stages: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int) -> None:
        nonlocal progress
        if progress is None:
            progress = _bars()
            progress.start()
        size = total if total > 0 else None
        if stage not in stages:
            stages[stage] = progress.add_task(stage, total=size)
        progress.update(stages[stage], completed=done, total=size)

    try:
        yield report
    finally:
        if progress is not None:
            progress.stop()


def _bars() -> Progress:
    """Made when something is reported: most starts fetch nothing."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    return Progress(*columns, console=notices())
