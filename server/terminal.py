"""What the commands share on a terminal: the consoles, the progress bar of a fetch, and one-sentence errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

_FLOWING = 2**18  # bytes; what pip writes before a download, such as its complaints about the network, is far less


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


class _TimeRemaining(TimeRemainingColumn):
    """rich's, but silent until bytes flow: from a few of them it would promise days."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.completed >= _FLOWING else Text()


@contextmanager
def fetch_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a `report(stage, done, total)` callback that draws one bar per stage, in bytes.

    A stage of unknown size (total <= 0) shows a moving bar. Nothing is drawn when nothing is reported, so a model that
    is already in the cache costs no line.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), _TimeRemaining())
    progress = Progress(*columns, console=notices())
    stages: dict[str, TaskID] = {}

    def report(stage: str, done: int, total: int) -> None:
        size = total if total > 0 else None
        if stage not in stages:
            progress.start()
            stages[stage] = progress.add_task(stage, total=size)
        progress.update(stages[stage], completed=done, total=size)

    try:
        yield report
    finally:
        if stages:
            progress.stop()
