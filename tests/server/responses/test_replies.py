"""From a request to a prompt and a generation: what fits, and what is dropped where the client allows it."""

from __future__ import annotations

import time

import pytest
from service import wait_until_idle

from paceline.engine.errors import RequestError
from paceline.server.caller import ANYONE
from paceline.server.fields import Fields
from paceline.server.parameters import Parameters
from paceline.server.responses.items import Item, Message
from paceline.server.responses.replies import start
from paceline.server.responses.request import read_request
from paceline.server.service import Service


async def begun(service: Service, items: list[Item], **fields: object) -> tuple[Item, ...]:
    """The items that a prompt holds; the generation is ended at once."""
    request = read_request(
        Fields({"input": "x", **fields}), service.limits, Parameters(), find=lambda _: None, max_items=10
    )
    generation, kept = await start(service, request, items, id="resp_1", caller=ANYONE, started=time.perf_counter())
    generation.abort()
    return kept


def talk(turns: int, size: int) -> list[Item]:
    return [Message("", role, role[0] * size) for _ in range(turns) for role in ("user", "assistant")]


async def test_the_newest_turns_that_fit_are_kept(service: Service) -> None:
    items = [*talk(12, 20), Message("", "user", "last")]
    with pytest.raises(RequestError) as long:
        await begun(service, items)
    assert (long.value.param, long.value.code) == ("input", "context_length_exceeded")
    kept = await begun(service, items, truncation="auto")
    assert kept == tuple(items[-len(kept) :])
    assert isinstance(kept[0], Message)
    assert kept[0].role == "user"
    with pytest.raises(RequestError):
        await begun(service, items[-len(kept) - 2 :])
    assert await begun(service, items[-3:], truncation="auto") == tuple(items[-3:])
    wait_until_idle(service)


async def test_one_turn_that_does_not_fit(service: Service) -> None:
    with pytest.raises(RequestError, match="maximum context length") as long:
        await begun(service, [*talk(2, 10), Message("", "user", "z" * 5000)], truncation="auto")
    assert long.value.param == "input"
