"""Replies that outlive their socket: dropped at every event, resumed, and never different."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from realtime_client import user
from service import ENDLESS, is_idle
from talks import Client, House, last_seq, told, when

from paceline.server.caller import Caller
from paceline.server.parameters import Parameters
from paceline.server.prepared import Prepared
from paceline.server.reply_parts import CallArguments, CallBegin, Part, PartReader, PlainReader, Words
from paceline.server.service import Service

PLAIN = {"max_output_tokens": 12, "seed": 3, "temperature": 0.8, "speculation": {"mode": "none"}, **ENDLESS}
VOICE = {"clauses": True, "timestamps": True}
TO_RESUME: dict[str, Any] = {"x_resume": True, "voice": VOICE, **PLAIN}


def of_reply(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """From response.created on."""
    kinds = [event["type"] for event in events]
    return events[kinds.index("response.created") :] if "response.created" in kinds else []


async def unbroken(house: House) -> list[dict[str, Any]]:
    client = house.client()
    client.ask(**TO_RESUME)
    await client.until("response.done")
    await house.close(client)
    return of_reply(client.events)


class CallsInside:
    """Reads the letters 4 to 8 of a text as the arguments of a call."""

    called = thinking = over = False

    def __init__(self) -> None:
        self._read = 0

    def push(self, text: str) -> list[Part]:
        return [part for letter in text for part in self._letter(letter)]

    def _letter(self, letter: str) -> list[Part]:
        self._read += 1
        begin: list[Part] = [CallBegin(0, "call_1", "look")] if self._read == 4 else []
        return [*begin, CallArguments(0, letter) if 4 <= self._read <= 8 else Words(letter)]

    def close(self) -> list[Part]:
        return []


@pytest.mark.parametrize("reader", [PlainReader, CallsInside])
async def test_a_drop_at_every_event(
    service: Service, monkeypatch: pytest.MonkeyPatch, reader: Callable[[], PartReader]
) -> None:
    """What a client has got and what it gets then are together what a client without a drop gets, each event once."""
    prepare = service.prepare

    async def prepared(messages: Any, parameters: Parameters, caller: Caller) -> Prepared:
        return replace(await prepare(messages, parameters), reader=lambda _: reader())

    monkeypatch.setattr(service, "prepare", prepared)
    house = House(service)
    whole = await unbroken(house)
    assert len([event for event in whole if "delta" in event]) >= 8
    assert ("response.function_call_arguments.done" in [event["type"] for event in whole]) == (reader is CallsInside)
    before = 3  # session.created and the two of the item
    for got in range(1, len(whole) + 1):
        client = house.client()
        client.drop_after = before + got
        client.ask(**TO_RESUME)
        await client.until_dropped()
        mine = of_reply(client.events)
        again = house.client()
        again.say("x_response.resume", response_id=mine[0]["response"]["id"], starting_after=last_seq(mine))
        await again.until("response.done")
        assert told(mine + again.events[1:]) == told(whole)
        seqs = [event["x_seq"] for event in mine + again.events if "delta" in event]
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(house.resumables) == 0
        await house.close(again)


async def test_a_drop_during_the_resumed_part(service: Service) -> None:
    house = House(service)
    whole = await unbroken(house)
    first = house.client()
    first.drop_after = 3 + 6
    first.ask(**TO_RESUME)
    await first.until_dropped()
    got = of_reply(first.events)
    for events in (3, 4, None):
        client = house.client()
        client.drop_after = events
        client.say("x_response.resume", response_id=got[0]["response"]["id"], starting_after=last_seq(got))
        if events is None:
            await client.until("response.done")
        else:
            await client.until_dropped()
            await client.leave()
        got += client.events[1:]
    assert told(got) == told(whole)
    await house.close(client)


async def test_the_conversation_and_its_settings_move(service: Service) -> None:
    house = House(service)
    client = house.client()
    client.say("session.update", session={"instructions": "Be brief.", "max_output_tokens": 2})
    client.ask(**TO_RESUME)
    created = await client.until("response.created")
    await client.leave()
    again = house.client()
    again.say("x_response.resume", response_id=created["response"]["id"])
    done = await again.until("response.done")
    item = done["response"]["output"][0]["id"]
    (retrieved,) = again.say("conversation.item.retrieve", item_id=item)
    assert retrieved["item"]["status"] == "incomplete"
    (updated,) = again.say("session.update", session={})
    assert updated["session"]["instructions"] == "Be brief."
    assert updated["session"]["max_output_tokens"] == 2
    await house.close(again)


async def test_without_being_asked_nothing_survives(service: Service) -> None:
    """And beside a reply that goes on, one that was not to ends at once."""
    house = House(service)
    client = house.client()
    client.ask(**ENDLESS)
    plain = await client.until("response.created")
    await client.leave()
    await when(lambda: is_idle(service))
    other = house.client()
    (error,) = other.say("x_response.resume", response_id=plain["response"]["id"])
    assert error["error"]["code"] == "response_not_found"

    other.ask(**{**TO_RESUME, "max_output_tokens": 30})
    other.say("response.create", response={"conversation": "none", **ENDLESS})
    await when(lambda: len(of_reply(other.events)) > 6)
    await other.leave()
    await when(lambda: service.loop.stats().running <= 1)
    assert len(house.resumables) == 1
    await house.close(other)


async def test_a_takeover(service: Service) -> None:
    """A client notices a broken connection before its server does."""
    house = House(service)
    stale, fresh = house.client(), house.client()
    stale.ask(**TO_RESUME)
    created = await stale.until("response.created")
    fresh.say("x_response.resume", response_id=created["response"]["id"])
    count = len(stale.events)
    await fresh.until("response.done")
    assert stale.dismissed
    assert len(stale.events) == count
    await stale.leave()  # it takes nothing along
    fresh.say("response.create", response={"max_output_tokens": 2})
    await when(lambda: [event["type"] for event in fresh.events].count("response.done") == 2)
    await house.close(fresh)


async def test_two_resumes(service: Service) -> None:
    """The second takes over from the first, and both see the whole reply."""
    house = House(service)
    client = house.client()
    client.ask(**TO_RESUME)
    done = await client.until("response.done")
    await client.leave()
    seen = []
    for _ in range(2):
        again = house.client()
        again.say("x_response.resume", response_id=done["response"]["id"])
        assert again.events[-1]["type"] == "response.done"
        seen.append(told(again.events[1:]))
    assert seen[0] == seen[1] == told(of_reply(client.events))
    await house.close(again)


async def test_a_session_with_a_conversation_does_not_resume(service: Service) -> None:
    house = House(service)
    client, other = house.client(), house.client()
    client.ask(**TO_RESUME)
    done = await client.until("response.done")
    other.ask("mine", max_output_tokens=2)
    (error,) = other.say("x_response.resume", response_id=done["response"]["id"], event_id="e")
    assert (error["error"]["code"], error["error"]["event_id"]) == ("conversation_not_empty", "e")
    assert not client.dismissed
    await other.until("response.done")
    await house.close(client, other)


async def test_a_reply_beside_can_be_resumed_in_place(service: Service) -> None:
    """Its session has no conversation, and is the one that is asked for."""
    house = House(service)
    client = house.client()
    aside = {"conversation": "none", "input": [{"role": "user", "content": "hi"}], **TO_RESUME}
    client.say("response.create", response=aside)
    done = await client.until("response.done")
    count = len(client.events)
    client.say("x_response.resume", response_id=done["response"]["id"])
    assert told(client.events[count:]) == told(of_reply(client.events[:count]))
    assert not client.dismissed
    await house.close(client)


@pytest.mark.parametrize("paced", [False, True])
async def test_a_cancel_frees_the_engine_within_one_step(service: Service, paced: bool) -> None:
    house = House(service)
    client = house.client()
    # Beside the conversation: nothing is computed ahead afterwards.
    aside = {"conversation": "none", "input": [user("hello there")]}
    client.say("response.create", response={**aside, "voice": {"pace": paced}, **ENDLESS})
    created = await client.until("response.created")
    await when(lambda: len(client.text) > 5)
    events = client.say("response.cancel", response_id=created["response"]["id"])
    steps = service.loop.stats().steps  # one may be under way
    assert [event["type"] for event in events if event["type"] != "response.output_text.delta"] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    done = events[-1]["response"]
    assert done["status"] == "cancelled"
    emitted = sum(event["x_spec"]["emitted"] for event in client.events if "delta" in event)
    assert emitted == done["usage"]["output_tokens"]
    await when(lambda: is_idle(service))
    assert service.loop.stats().steps - steps <= 1
    await asyncio.sleep(0.01)
    assert client.events[-1] is events[-1]
    await house.close(client)


async def test_text_and_clauses_are_the_same_however_they_come(service: Service) -> None:
    """Paced or not, with speculation, whose steps bring several tokens at once, or without."""
    house = House(service)
    replies = []
    for mode, pace in (("none", False), ("suffix", False), ("suffix", True)):
        client: Client = house.client()
        known = {"type": "content", "content": replies[0][0] if replies else "none"}
        asked = {**PLAIN, "max_output_tokens": 60, "speculation": {"mode": mode}, "prediction": known}
        client.ask(voice={"pace": pace, "clauses": True}, **asked)
        done = (await client.until("response.done"))["response"]
        deltas = [event for event in client.events if "delta" in event]
        assert [delta["x_seq"] for delta in deltas] == list(range(1, len(deltas) + 1))
        assert sum(delta["x_spec"]["emitted"] for delta in deltas) == done["usage"]["output_tokens"]
        assert (sum(delta["x_spec"]["drafted"] for delta in deltas) > 0) == (mode == "suffix")
        told_clauses = [event for event in client.events if event["type"] == "x_response.clause"]
        replies.append((client.text, [(clause["start"], clause["end"], clause["text"]) for clause in told_clauses]))
        assert replies[-1][1]
        await house.close(client)
    assert replies[0] == replies[1] == replies[2]
