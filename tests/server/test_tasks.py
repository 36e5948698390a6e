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


async def test_a_cancelled_caller_keeps_its_own_reason_and_leaves_nothing_running() -> None:
    """However often it is cancelled: a scope that ends does it again and again."""
    ended = False

    async def slow() -> None:
        nonlocal ended
        try:
            await forever()
        finally:
            await asyncio.sleep(0.05)
            ended = True

    async def caller() -> None:
        task = asyncio.create_task(slow())
        await asyncio.sleep(0)
        try:
            await cancel_all([task])
        finally:
            assert ended

    running = asyncio.create_task(caller())
    for _ in range(3):
        await asyncio.sleep(0.01)
        running.cancel("my reason")
    with pytest.raises(asyncio.CancelledError, match="my reason"):
        await running
    assert ended
