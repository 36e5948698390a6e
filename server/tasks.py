"""Ending tasks that belong to one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks and waits until they have ended; what they raise is dropped.

    The caller may be cancelled meanwhile, more than once: that is raised when they have ended, so that whatever it
    gives back afterwards, in a `finally`, is used by nobody any more.

    asyncio.wait and not gather, which would raise an error of a child's in its place, without the mark by which an
    enclosing cancel scope knows its own.
    """
    ending = set(tasks)
    for task in ending:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while left := [task for task in ending if not task.done()]:
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as error:
            cancelled = error
    for task in ending:
        if not task.cancelled():
            task.exception()
    if cancelled is not None:
        raise cancelled
