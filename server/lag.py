"""How late the event loop is: a sleeper that is woken in time finds every other task woken in time."""

from __future__ import annotations

import asyncio
import time

from prometheus_client import Histogram

_INTERVAL_S = 0.02  # 50 looks a second cost some 0.2 % of one core


async def probe(histogram: Histogram) -> None:
    """Until it is cancelled: sleeps, and observes by how many seconds it overslept.

    By a clock of its own: uvloop's stands still while its callbacks run, and while it waits for the interpreter.
    """
    while True:
        due = time.perf_counter() + _INTERVAL_S
        await asyncio.sleep(_INTERVAL_S)
        histogram.observe(max(0.0, time.perf_counter() - due))
