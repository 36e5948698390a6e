"""Who may resume what, for how long, and how many can wait for it."""

from __future__ import annotations

from typing import Any

from service import ENDLESS, is_idle
from talks import House, when

from paceline.server.service import Service

ENDLESS_RESUMABLE: dict[str, Any] = {"x_resume": True, **ENDLESS}


async def parked(house: House, caller: str = "", **response: Any) -> str:
    """The id of a response whose client has gone."""
    client = house.client(caller)
    client.ask(**{"x_resume": True, "max_output_tokens": 6, **response})
    created = await client.until("response.created")
    await client.leave()
    response_id: str = created["response"]["id"]
    return response_id


async def code_of_resuming(house: House, response_id: str, caller: str = "", **fields: Any) -> str | None:
    client = house.client(caller)
    events = client.say("x_response.resume", response_id=response_id, **fields)
    code: str | None = events[0]["error"]["code"] if events and events[0]["type"] == "error" else None
    await client.leave()
    return code


async def test_only_the_same_caller(service: Service) -> None:
    """Another's response is as unknown as none at all."""
    house = House(service)
    response_id = await parked(house, "ann")
    assert await code_of_resuming(house, response_id, "bob") == "response_not_found"
    assert await code_of_resuming(house, "resp_none", "ann") == "response_not_found"
    assert await code_of_resuming(house, response_id, "ann") is None
    house.context.drain.requested.set()
    await when(lambda: house.context.drain.busy == 0)


async def test_time_ends_it(service: Service) -> None:
    """And with it the reply, however far it is."""
    house = House(service, resume_s=0.02)
    response_id = await parked(house, **ENDLESS_RESUMABLE, max_output_tokens="inf")
    assert len(house.resumables) == 1
    await when(lambda: house.context.drain.busy == 0 and is_idle(service))
    assert await code_of_resuming(house, response_id) == "response_not_found"
    assert house.context.drain.busy == 0


async def test_what_ended_long_ago_is_not_parked(service: Service) -> None:
    house = House(service, resume_s=0.0)
    client = house.client()
    client.ask(x_resume=True, max_output_tokens=2)
    await client.until("response.done")
    await client.leave()
    assert len(house.resumables) == 0


async def test_who_says_good_bye_keeps_only_what_still_runs(service: Service) -> None:
    house = House(service)
    client, other = house.client(), house.client()
    client.ask(x_resume=True, max_output_tokens=2)
    await client.until("response.done")
    await house.resumables.leave(client.talk, client, parting=True)
    assert len(house.resumables) == 0
    other.ask(**ENDLESS_RESUMABLE)
    await other.until("response.created")
    await house.resumables.leave(other.talk, other, parting=True)
    assert len(house.resumables) == 1
    house.context.drain.requested.set()
    await when(lambda: house.context.drain.busy == 0 and is_idle(service))


async def test_only_so_many_wait(service: Service) -> None:
    """The oldest ends, its reply too."""
    house = House(service, max_parked=2)
    ids = [await parked(house, **ENDLESS_RESUMABLE, max_output_tokens="inf") for _ in range(3)]
    assert len(house.resumables) == 2
    assert await code_of_resuming(house, ids[0]) == "response_not_found"
    assert await code_of_resuming(house, ids[2]) is None
    house.context.drain.requested.set()
    await when(lambda: house.context.drain.busy == 0 and is_idle(service))


async def test_only_so_much_is_kept(service: Service) -> None:
    house = House(service, max_replay_events=6)
    client = house.client()
    client.ask(x_resume=True, max_output_tokens=12, **ENDLESS)
    done = await client.until("response.done")
    await client.leave()
    response_id = done["response"]["id"]
    assert await code_of_resuming(house, response_id) == "resume_gone"
    last = max(event["x_seq"] for event in client.events if "delta" in event)
    assert len(house.resumables) == 1
    assert await code_of_resuming(house, response_id, starting_after=last) is None
    house.context.drain.requested.set()
    await when(lambda: house.context.drain.busy == 0)


async def test_a_drain_ends_what_waits(service: Service) -> None:
    house = House(service)
    response_id = await parked(house, **ENDLESS_RESUMABLE, max_output_tokens="inf")
    assert house.context.drain.busy == 1
    assert await house.context.drain.wait(20)
    assert len(house.resumables) == 0
    await when(lambda: is_idle(service))
    assert await code_of_resuming(house, response_id) == "shutting_down"
    house.context.drain.requested.clear()
    client = house.client()
    client.ask(x_resume=True, max_output_tokens=6)
    await client.until("response.created")
    house.context.drain.requested.set()
    await client.leave()  # whoever leaves now does not wait either
    assert len(house.resumables) == 0
