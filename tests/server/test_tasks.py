from __future__ import annotations

import asyncio

import pytest

from paceline.server.tasks import cancel_all


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("broken")


async def test_everything_has_ended_and_nothing_is_raised() -> None:
    tasks = [asyncio.create_task(forever()), asyncio.create_task(broken())]
    await asyncio.sleep(0)
    await cancel_all(tasks)
    assert all(task.done() for task in tasks)
    await cancel_all([])


async def test_a_cancelled_caller_keeps_its_own_reason() -> None:
    async def slow() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0.05)

    async def caller() -> None:
        task = asyncio.create_task(slow())
        await asyncio.sleep(0)
        await cancel_all([task])

    running = asyncio.create_task(caller())
    await asyncio.sleep(0.01)
    running.cancel("my reason")
    with pytest.raises(asyncio.CancelledError, match="my reason"):
        await running
