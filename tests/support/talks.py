"""Talks over a real service, without sockets: what a client would get is in a list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from realtime_client import user

from paceline.server.caller import Anyone, Caller
from paceline.server.context import Context, Settings
from paceline.server.resumables import Resumables
from paceline.server.service import Service
from paceline.server.talk import Talk

T = TypeVar("T")
Event = dict[str, Any]


class Named(Anyone):
    """The holder of some key."""

    def __init__(self, name: str) -> None:
        super().__init__(name)


class Client:
    """One socket's end of a talk: its Outlet, and who speaks."""

    def __init__(self, house: House, caller: Caller) -> None:
        self._house = house
        self.events: list[Event] = []
        self.dismissed = False
        self.drop_after: int | None = None  # as many events arrive, then the connection breaks
        self._leaving: asyncio.Task[None] | None = None
        self.talk = Talk(house.context, caller, self, house.resumables)
        self.talk.open()

    def put(self, event: Event) -> None:
        if self.drop_after is None or len(self.events) < self.drop_after:
            self.events.append(event)
            if len(self.events) == self.drop_after:
                self._leaving = asyncio.create_task(self.leave())

    def move(self, talk: Talk) -> None:
        self._house.left.append(self.talk)
        self.talk = talk

    def dismiss(self) -> None:
        self.dismissed = True

    def say(self, kind: str, **fields: Any) -> list[Event]:
        """What it brings at once."""
        before = len(self.events)
        self.talk.receive(json.dumps({"type": kind, **fields}))
        return self.events[before:]

    def ask(self, text: str = "hello there", **response: Any) -> None:
        self.say("conversation.item.create", item=user(text))
        self.say("response.create", response=response)

    async def leave(self) -> None:
        await self._house.resumables.leave(self.talk, self)

    async def until(self, kind: str) -> Event:
        """The first event of that type, once it is there."""
        return await when(lambda: next((event for event in self.events if event["type"] == kind), None))

    async def until_dropped(self) -> None:
        await (await when(lambda: self._leaving))

    @property
    def text(self) -> str:
        return "".join(event["delta"] for event in self.events if "delta" in event)


class House:
    """What one endpoint has: settings, and the talks that can be resumed."""

    def __init__(self, service: Service, **settings: Any) -> None:
        self.context = Context(service, Settings(**settings))
        self.resumables = Resumables(self.context)
        self.left: list[Talk] = []

    def client(self, caller: str = "") -> Client:
        return Client(self, Named(caller))

    async def close(self, *clients: Client) -> None:
        for talk in [*self.left, *(client.talk for client in clients)]:
            await talk.close()


async def when(look: Callable[[], T | None], patience_s: float = 20.0) -> T:
    """What `look` finds, as soon as it finds something."""
    async with asyncio.timeout(patience_s):
        while not (found := look()):
            await asyncio.sleep(0.001)
    return found


def last_seq(events: Sequence[Event]) -> int:
    """What a client names as `starting_after`."""
    return max((event["x_seq"] for event in events if "delta" in event), default=0)


def told(events: Sequence[Event]) -> list[Event]:
    """Without what a replay repeats, and without what depends on the moment."""
    once = {event["event_id"]: event for event in events}
    return [_timeless(event) for event in once.values()]


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(entry) for key, entry in value.items() if key not in _OF_THE_MOMENT}
    return [_timeless(entry) for entry in value] if isinstance(value, list) else value


_OF_THE_MOMENT = (
    "id",
    "item_id",
    "response_id",
    "previous_item_id",
    "conversation_id",
    "t_ms",
    "metrics",
    "cached_tokens",
    "cached_tokens_details",
    "reason",
    "source",
    "drafted",
    "accepted",
)
