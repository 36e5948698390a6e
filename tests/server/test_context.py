from __future__ import annotations

import asyncio

import pytest

from paceline.server.context import Context, Drain, Settings
from paceline.server.service import Service


async def test_a_drain_waits_for_what_is_busy() -> None:
    drain = Drain()
    with drain.occupied():
        waiting = asyncio.create_task(drain.wait(30))
        await asyncio.sleep(0.05)
        assert drain.requested.is_set()
        assert not waiting.done()
    assert await waiting


async def test_a_drain_gives_up_in_the_end() -> None:
    drain = Drain()
    with drain.occupied():
        assert not await drain.wait(0.05)


def test_a_failing_block_is_not_busy_any_more() -> None:
    drain = Drain()
    with pytest.raises(ValueError, match="x"), drain.occupied():
        raise ValueError("x")
    assert drain.busy == 0


def test_ready_ends_with_the_drain(service: Service) -> None:
    context = Context(service, Settings())
    assert context.ready
    context.drain.requested.set()
    assert not context.ready
    assert service.healthy
