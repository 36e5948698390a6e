from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from paceline.server.sse import EventStream, event, while_connected


class Client:
    """The other end of an ASGI call: leaves when told, keeps what was sent."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.sent: list[Any] = []

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)


def test_one_prefix_one_space_one_blank_line() -> None:
    assert event({"a": "é\n"}) == 'data: {"a":"é\\n"}\n\n'.encode()


async def test_work_that_ends_is_returned() -> None:
    async def work() -> int:
        await asyncio.sleep(0)
        return 5

    assert await while_connected(Client().receive, work()) == 5


async def test_errors_of_the_work_come_through() -> None:
    async def work() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        await while_connected(Client().receive, work())


async def test_the_work_is_over_when_the_client_has_left() -> None:
    client = Client()
    ended = False

    async def work() -> None:
        nonlocal ended
        client.left.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended = True

    assert await while_connected(client.receive, work()) is None
    assert ended


async def test_a_stream_is_sent_write_by_write() -> None:
    async def source() -> AsyncGenerator[bytes, None]:
        yield b"one"
        yield b"two"

    client, released = Client(), []
    await EventStream(source(), lambda: released.append(1))({"type": "http"}, client.receive, client.send)
    assert [message.get("body") for message in client.sent] == [None, b"one", b"two", b""]
    headers = dict(client.sent[0]["headers"])
    assert headers[b"content-type"].startswith(b"text/event-stream")
    assert b"content-length" not in headers
    assert b"content-encoding" not in headers
    assert released == [1]


@pytest.mark.parametrize("before_the_start", [True, False])
async def test_a_client_that_leaves_releases_the_reply(before_the_start: bool) -> None:
    async def source() -> AsyncGenerator[bytes, None]:
        yield b"one"
        client.left.set()
        await asyncio.Event().wait()

    client, released = Client(), []
    if before_the_start:
        client.left.set()
    await EventStream(source(), lambda: released.append(1))({"type": "http"}, client.receive, client.send)
    assert released == [1]


async def test_a_socket_that_breaks_at_the_first_byte_releases_the_reply() -> None:
    async def source() -> AsyncGenerator[bytes, None]:
        yield b"never"

    async def broken(message: Any) -> None:
        raise OSError("gone")

    released: list[int] = []
    with pytest.raises(OSError, match="gone"):
        await EventStream(source(), lambda: released.append(1))({"type": "http"}, Client().receive, broken)
    assert released == [1]
