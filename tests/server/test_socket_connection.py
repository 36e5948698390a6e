"""What every socket of the server has, over in-memory messages."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from service import MODEL_ID
from starlette.websockets import WebSocket

from paceline.server.api_errors import ApiError
from paceline.server.context import Context, Settings
from paceline.server.outbox import Outbox
from paceline.server.service import Service
from paceline.server.socket_connection import SocketConnection, Sockets


class Client:
    """One WebSocket; messages of the client are put into `inbox`, those of the server come out in `sent`."""

    def __init__(self, query: str = "", subprotocols: tuple[str, ...] = ()) -> None:
        self.inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sent: list[dict[str, Any]] = []
        self.inbox.put_nowait({"type": "websocket.connect"})
        scope = {"type": "websocket", "query_string": query.encode(), "headers": [], "subprotocols": subprotocols}
        self.websocket = WebSocket(scope, self.inbox.get, self._send)  # type: ignore[arg-type]

    async def _send(self, message: Any) -> None:
        self.sent.append(message)


class Echo:
    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.idle = True
        self.refused = False

    def receive(self, text: str) -> None:
        if text == "bug":
            raise RuntimeError(text)
        self.outbox.put({"type": "echo", "text": text})

    def refuse_new(self) -> None:
        self.refused = True


async def run(context: Context, client: Client) -> tuple[Echo, Any]:
    await client.websocket.accept()
    outbox = Outbox(4)
    echo = Echo(outbox)
    return echo, await SocketConnection(context, client.websocket, echo, outbox).run()


async def test_messages_go_in_and_out_until_the_client_leaves(service: Service) -> None:
    client = Client()
    client.inbox.put_nowait({"type": "websocket.receive", "text": "a"})
    running = asyncio.create_task(run(Context(service, Settings()), client))
    while len(client.sent) < 2:
        await asyncio.sleep(0)
    assert client.sent[-1] == {"type": "websocket.send", "text": '{"type":"echo","text":"a"}'}
    client.inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
    assert (await running)[1] is None


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"type": "websocket.receive", "bytes": b"x"}, 1003),
        ({"type": "websocket.receive", "text": "bug"}, 1011),
    ],
)
async def test_what_ends_it(service: Service, message: dict[str, Any], code: int) -> None:
    client = Client()
    client.inbox.put_nowait(message)
    assert (await run(Context(service, Settings()), client))[1][0] == code


async def test_who_sends_on_without_reading_is_told_to_go(service: Service) -> None:
    client = Client()

    async def stuck(_: Any) -> None:
        await asyncio.Event().wait()

    await client.websocket.accept()
    client.websocket._send = stuck
    for _ in range(40):
        client.inbox.put_nowait({"type": "websocket.receive", "text": "a"})
    outbox = Outbox(4)
    context = Context(service, Settings(max_unanswered=20_000))
    close = await SocketConnection(context, client.websocket, Echo(outbox), outbox).run()
    assert close is not None
    assert close[0] == 1008


async def test_who_sends_on_and_on_does_not_keep_the_event_loop(service: Service) -> None:
    """Each message takes a while and none is answered: the next one is there at once, and others want their turn."""

    class Busy(Echo):
        def receive(self, text: str) -> None:
            time.sleep(0.0005)

    client, turns = Client(), 0
    await client.websocket.accept()
    for _ in range(200):
        client.inbox.put_nowait({"type": "websocket.receive", "text": "a"})
    client.inbox.put_nowait({"type": "websocket.disconnect", "code": 1000})
    outbox = Outbox(4)
    running = asyncio.create_task(
        SocketConnection(Context(service, Settings()), client.websocket, Busy(outbox), outbox).run()
    )
    while not running.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 20


async def test_a_drain_waits_for_what_runs(service: Service) -> None:
    context, client = Context(service, Settings()), Client()
    context.drain.requested.set()
    echo, close = await run(context, client)
    assert (echo.refused, close[0]) == (True, 1001)
    context.drain.over = True
    assert (await run(context, Client()))[1][0] == 1012


async def test_the_door(service: Service) -> None:
    context = Context(service, Settings(max_sockets=1))
    sockets = Sockets(context)
    client = Client(f"model={MODEL_ID}", ("realtime", "openai-insecure-api-key.x"))

    async def inside(websocket: WebSocket) -> None:
        assert context.drain.busy == 1
        with pytest.raises(ApiError) as full:
            await sockets.serve(Client().websocket, inside)
        assert (full.value.status, full.value.code) == (503, "too_many_sockets")

    await sockets.serve(client.websocket, inside)
    assert client.sent[0]["subprotocol"] == "realtime"
    assert context.drain.busy == 0
    with pytest.raises(ApiError) as unknown:
        await sockets.serve(Client("model=gpt-9").websocket, inside)
    assert unknown.value.status == 404
    context.drain.requested.set()
    with pytest.raises(ApiError) as draining:
        await sockets.serve(Client().websocket, inside)
    assert draining.value.code == "shutting_down"
