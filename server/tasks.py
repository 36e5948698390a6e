"""Ending tasks that belong to one connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancels tasks and waits until they have ended; what they raise is dropped.

    asyncio.wait and not gather: when the caller itself is cancelled here, gather would raise an error of a child's,
    without the mark by which an enclosing cancel scope knows its own.
    """
    ending = list(tasks)
    for task in ending:
        task.cancel()
    if ending:
        await asyncio.wait(ending)
    for task in ending:
        if not task.cancelled():
            task.exception()
