"""Many sockets at once, some of which ask and never read: how the server's memory takes it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import orjson
import websockets
from harness import Running
from voice_client import ProtocolError, talking
from websockets.asyncio.client import connect

_ENDLESS = {"logit_bias": {"2": -100}}
_WARM_UP = 0.2  # of the time: what a server takes once, for buffers and compiled things, is no growth


async def growth_mb(server: Running, sockets: int, deaf: int, seconds: float, speaking: int) -> float:
    """MB of resident memory the server has at the end more than after the beginning; the highest of the last seconds.

    All but `deaf` of the sockets are idle or speak; deaf ones are opened anew when the server drops them.
    """
    async with AsyncExitStack() as stack:
        for index in range(sockets - deaf - speaking):
            talk = await stack.enter_async_context(talking(server.url))
            if index % 10 == 0:
                await talk.say(f"This is conversation {index}, and nobody says anything in it.")
        end = time.perf_counter() + seconds
        tasks = [asyncio.create_task(_deaf(server.url, end)) for _ in range(deaf)]
        tasks += [asyncio.create_task(_speak(server.url, end, index)) for index in range(speaking)]
        await asyncio.sleep(seconds * _WARM_UP)
        before = server.memory_mb()["rss_mb"]
        after = before
        while time.perf_counter() < end:
            await asyncio.sleep(min(5.0, seconds / 20))
            after = server.memory_mb()["rss_mb"]
        await asyncio.gather(*tasks)
    return after - before


async def _speak(url: str, end: float, index: int) -> None:
    """One conversation after the other, of a few turns each."""
    turn = 0
    while time.perf_counter() < end:
        async with talking(url) as talk:
            for _ in range(3):
                turn += 1
                await talk.say(f"Speaker {index} says number {turn}. What comes after it?")
                await talk.ask(max_output_tokens=64, **_ENDLESS)


async def _deaf(url: str, end: float) -> None:
    """Asks and asks, in a socket whose buffers are small, and never reads; comes back when it was dropped."""
    address = urlsplit(url)
    while time.perf_counter() < end:
        with contextlib.suppress(OSError, websockets.WebSocketException, ProtocolError, TimeoutError):
            raw = socket.socket()
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            raw.setblocking(False)
            await asyncio.get_running_loop().sock_connect(raw, (address.hostname, address.port))
            # A queue of one message: the library stops reading from the socket when nobody takes it.
            async with connect(
                url.replace("http", "ws", 1) + "/v1/realtime",
                sock=raw,
                compression=None,
                max_queue=1,
                ping_interval=None,
            ) as connection:
                text = orjson.dumps({"type": "response.create", "response": {"instructions": "Count.", **_ENDLESS}})
                while time.perf_counter() < end:
                    await connection.send(text.decode())
                    await asyncio.sleep(1)
