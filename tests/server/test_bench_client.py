from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sse_server import Behaviour, create, running

from paceline.server.address import AddressError
from paceline.server.bench_client import BenchError, Client, Reply, SpeculationFigures, SSEParser

ASK = [{"role": "user", "content": "say hello"}]
SETTINGS = {"model": "echo-1", "max_tokens": 100}


@given(st.data())
def test_parser_finds_events_however_the_bytes_are_cut(data: st.DataObject) -> None:
    stream = (
        b": comment\n\ndata: one\n\nevent: x\ndata:two\r\n\r\n\n\ndata:  three \n\n"
        b"data: multi\ndata: line\n\ndata: \xe2\x80\xa8sep\n\ndata: unfinished\n"
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    parser = SSEParser()
    parts = [stream[a:b] for a, b in itertools.pairwise([0, *cuts, len(stream)])]
    events = [event for part in parts for event in parser.feed(part)]
    assert events == [b"one", b"two", b" three ", b"multi\nline", b"\xe2\x80\xa8sep"]


def test_tpot_counts_the_tokens_after_the_first() -> None:
    assert Reply(ttft=1.0, end=3.0, tokens=5).tpot == 0.5
    assert Reply(ttft=1.0, end=3.0, tokens=1).tpot is None
    assert Reply(tokens=5).tpot is None


async def test_a_reply_is_read_with_usage_and_figures() -> None:
    behaviour = Behaviour(words=6, words_per_chunk=2, figures=True)
    with running(create(behaviour)) as url:
        async with Client(url) as client:
            assert await client.first_model() == "echo-1"
            reply = await client.ask(ASK, {**SETTINGS, "temperature": 0.5})
    assert reply.error is None
    assert reply.text == "hello\u2028 " * 6
    assert (reply.tokens, reply.tokens_from, reply.finish) == (6, "usage", "stop")
    assert (reply.prompt_tokens, reply.cached_tokens) == (10, 5)
    assert reply.figures == SpeculationFigures(steps=4, drafted=8, accepted=6)
    assert len(reply.gaps) == 2
    assert reply.ttft is not None
    assert reply.end is not None
    assert reply.ttft + sum(reply.gaps) <= reply.end
    sent = behaviour.requests[0]
    assert sent["stream_options"] == {"include_usage": True}
    assert sent["temperature"] == 0.5


async def test_without_usage_the_chunks_are_counted() -> None:
    with running(create(Behaviour(words=6, words_per_chunk=2, usage=False))) as url:
        async with Client(url) as client:
            reply = await client.ask(ASK, SETTINGS)
    assert (reply.tokens, reply.tokens_from) == (3, "chunks")
    assert reply.figures is None


async def test_failures_become_sentences_in_the_reply() -> None:
    behaviour = Behaviour(fail="hello", delay_s=30.0)
    with running(create(behaviour)) as url:
        async with Client(url, timeout=1.0) as client:
            assert (await client.ask(ASK, SETTINGS)).error == "HTTP 400: that prompt is not liked"
            slow = await client.ask([{"role": "user", "content": "wait"}], SETTINGS)
            assert slow.error == "no end of the reply within 1 s"
            assert slow.ttft is not None
    async with Client(url, timeout=5) as client:
        assert "connection failed" in ((await client.ask(ASK, SETTINGS)).error or "")


async def test_a_server_that_cannot_be_measured_is_named() -> None:
    with pytest.raises(AddressError):
        Client("ftp://h")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    async with Client(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(BenchError, match=f"No server answers at http://127.0.0.1:{port}/v1"):
            await client.first_model()
    with running(create(Behaviour(key="secret"))) as url:
        async with Client(url) as client:
            with pytest.raises(BenchError, match="refuses the key"):
                await client.first_model()
        async with Client(url, api_key="secret") as client:
            assert await client.first_model() == "echo-1"


async def test_every_request_has_a_connection_of_its_own() -> None:
    """One kept open may be closed by the server just when the next request goes out."""
    seen: list[asyncio.StreamWriter] = []
    reply = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError), contextlib.closing(writer):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                kind = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                writer.write(kind + b"content-length: %d\r\n\r\n" % len(reply) + reply)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
        texts = [(await client.ask(ASK, SETTINGS)).text for _ in range(3)]
        assert texts == ["hi"] * 3
        assert len(seen) == 3
