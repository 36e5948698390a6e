"""Deltas from the engine thread to readers on the event loop, with the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from service import build_service, is_idle, running_service

from paceline.engine.errors import OverloadedError, RequestError
from paceline.engine.request import Delta, Request, SamplingParams, Speculation
from paceline.server.service import Service
from paceline.server.stream import Stream, Streams


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running_service(
        tmp_path_factory.mktemp("stream"), context_length=2048, max_batch=4, queue_limit=16, step_budget=32
    ) as service:
        yield service


def request(name: str, max_tokens: int = 8, prompt: int = 20, **sampling: int) -> Request:
    params = SamplingParams(max_tokens=max_tokens, seed=3, **sampling)
    return Request(id=name, prompt=tuple(10 + i % 200 for i in range(prompt)), sampling=params)


async def idle(service: Service) -> None:
    async with asyncio.timeout(20):
        while not is_idle(service):
            await asyncio.sleep(0.002)


async def pinned(service: Service, blocks: int) -> None:
    async with asyncio.timeout(20):
        while service.loop.stats().blocks_pinned != blocks:
            await asyncio.sleep(0.002)


async def read(stream: Stream) -> list[Delta]:
    async with stream:
        return [delta async for delta in stream]


async def test_deltas_come_in_order_up_to_the_finish(service: Service) -> None:
    deltas = await read(service.streams.open([request("a")]))
    assert [delta.finish for delta in deltas] == [None] * (len(deltas) - 1) + ["length"]
    assert sum(len(delta.tokens) for delta in deltas) == 8
    assert len(service.streams) == 0


async def test_a_reply_of_several_choices_ends_with_the_last(service: Service) -> None:
    requests = [request("a", 3), request("b", 9), request("c", 5)]
    deltas = await read(service.streams.open(requests))
    finished = [delta.request_id for delta in deltas if delta.finish]
    assert sorted(finished) == ["a", "b", "c"]
    assert finished[-1] == "b"


async def test_many_readers_get_their_own(service: Service) -> None:
    streams = [service.streams.open([request(f"r{i}", 4 + i)]) for i in range(4)]
    replies = await asyncio.gather(*map(read, streams))
    assert [sum(len(delta.tokens) for delta in deltas) for deltas in replies] == [4, 5, 6, 7]


async def test_what_a_conversation_has_in_the_cache_is_pinned_until_it_is_over(service: Service) -> None:
    await read(service.streams.open([request("a", prompt=40)]))
    service.streams.pin("me", request("a", prompt=40).prompt)
    await pinned(service, 2)
    service.streams.unpin("me")
    await pinned(service, 0)


async def test_abort_frees_the_engine_within_a_step(service: Service) -> None:
    stream = service.streams.open([request("a", 2000)])
    await stream.next()
    before = service.loop.stats().steps
    stream.abort()
    await idle(service)
    assert service.loop.stats().steps <= before + 2  # the one under way, and one that ended while we looked
    assert await stream.next() is None
    assert len(service.streams) == 0
    stream.abort()  # harmless


async def test_abort_during_a_long_prefill(service: Service) -> None:
    stream = service.streams.open([request("a", 10, prompt=1500), request("b", 10, prompt=1400)])
    while not service.loop.stats().running:
        await asyncio.sleep(0.001)
    assert not stream.ready
    stream.abort()
    await idle(service)
    assert len(await read(service.streams.open([request("a")]))) > 0


async def test_leaving_the_block_by_an_exception_aborts(service: Service) -> None:
    async def leave() -> None:
        async with service.streams.open([request("a", 2000)]) as stream:
            async for _ in stream:
                raise ValueError("left")

    with pytest.raises(ValueError, match="left"):
        await leave()
    await idle(service)


async def test_a_cancelled_reader_aborts(service: Service) -> None:
    reading = asyncio.create_task(read(service.streams.open([request("a", 2000)])))
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await idle(service)


async def test_patience_is_not_the_end(service: Service) -> None:
    async with service.streams.open([request("a", 2000)]) as stream:
        with pytest.raises(TimeoutError):
            await stream.next(patience=0)
        assert await stream.next() is not None


async def test_a_cut_keeps_the_cache_and_drops_what_follows(service: Service) -> None:
    stream = service.streams.open([request("a", 2000)])
    first = await stream.next()
    assert first is not None
    await asyncio.sleep(0.05)  # more deltas wait by now
    stream.cut("a", len(first.tokens))
    assert await stream.next() is None
    await idle(service)


async def test_what_the_engine_refuses_leaves_nothing_behind(service: Service) -> None:
    too_long = request("b", prompt=20)
    too_long = Request(id="b", prompt=(10,) * 3000, sampling=too_long.sampling)
    with pytest.raises(RequestError):
        service.streams.open([request("a", 2000), too_long])
    unknown = Request(id="c", prompt=(1,), sampling=request("c").sampling, speculation=Speculation(mode="medusa"))
    with pytest.raises(RequestError):
        service.streams.open([unknown])
    assert len(service.streams) == 0
    await idle(service)


async def test_a_full_queue_refuses_a_reply_as_a_whole(service: Service) -> None:
    with pytest.raises(OverloadedError):
        service.streams.open([request(f"r{i}", 2000) for i in range(40)])
    assert len(service.streams) == 0
    await idle(service)


async def test_an_id_in_use_is_a_mistake(service: Service) -> None:
    async with service.streams.open([request("a", 2000)]) as stream:
        with pytest.raises(ValueError, match="'a' is running"):
            service.streams.open([request("b"), request("a")])
        assert await stream.next() is not None
    await idle(service)


def test_a_closed_event_loop_does_not_hurt_the_engine(tmp_path: Path) -> None:
    with running_service(tmp_path) as service:

        async def leave() -> None:
            service.streams.open([request("a", 30)])

        asyncio.run(leave())
        assert asyncio.run(read_all(service.streams, request("b"))) == 8


async def read_all(streams: Streams, asked: Request) -> int:
    return sum(len(delta.tokens) for delta in await read(streams.open([asked])))


def test_nothing_is_posted_before_anyone_reads(tmp_path: Path) -> None:
    service = build_service(tmp_path)
    service.start()
    service.loop.submit(request("a"))
    service.stop()


async def test_the_end_of_all_streams_is_told_to_each(tmp_path: Path) -> None:
    with running_service(tmp_path, context_length=2048) as service:
        open_before = service.streams.open([request("a", 2000), request("b", 2000)])
        assert await open_before.next() is not None
        service.streams.abort_all()
        finishes = {delta.request_id: delta.finish for delta in await read(open_before) if delta.finish is not None}
        assert finishes == {"a": "abort", "b": "abort"}
        assert len(service.streams) == 0
        await idle(service)


async def test_other_tasks_have_their_turn_between_the_replies_of_a_step(service: Service) -> None:
    streams = [service.streams.open([request(name, max_tokens=2000)]) for name in "abc"]
    order: list[str] = []

    async def reader(name: str, stream: Stream) -> None:
        await stream.next()
        order.append(name)

    tasks = [asyncio.create_task(reader(name, stream)) for name, stream in zip("abc", streams, strict=True)]
    await asyncio.sleep(0)  # all of them wait
    service.streams._dispatch([Delta(request_id=name, tokens=(1,)) for name in "abc"])
    turns = 0
    while len(order) < 3:
        await asyncio.sleep(0)
        turns += 1
        assert len(order) <= turns
    assert order == ["a", "b", "c"]
    await asyncio.gather(*tasks)
    for stream in streams:
        stream.abort()
    await idle(service)
