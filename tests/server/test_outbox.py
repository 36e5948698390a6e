from __future__ import annotations

import asyncio
from typing import Any

from token_replies import TOKENIZER, letters
from traces import assert_traced, chain_trace

from paceline.server.committer import Piece
from paceline.server.outbox import Outbox
from paceline.server.step_counts import StepCounts
from paceline.server.step_trace import step_body


def delta(response: str, text: str, seq: int) -> dict[str, Any]:
    spec = {"drafted": 1, "accepted": 1, "emitted": 2}
    return {"type": "response.output_text.delta", "response_id": response, "delta": text, "x_seq": seq, "x_spec": spec}


async def drained(outbox: Outbox) -> list[dict[str, Any]]:
    return [await outbox.get() for _ in range(len(outbox))]


async def test_deltas_merge_while_they_wait() -> None:
    """A reader that never reads costs one event per response, however long the reply."""
    outbox = Outbox(10)
    for seq in range(1, 1001):
        outbox.put(delta("a", "x", seq))
        outbox.put(delta("b", "y", seq))
    assert len(outbox) == 2
    first, second = await drained(outbox)
    assert first["delta"] == "x" * 1000
    assert second["delta"] == "y" * 1000
    assert first["x_seq"] == 1000
    assert first["x_spec"] == {"drafted": 1000, "accepted": 1000, "emitted": 2000}


async def test_order_within_a_response_is_kept() -> None:
    outbox = Outbox(10)
    outbox.put(delta("a", "1", 1))
    outbox.put({"type": "error"})
    outbox.put(delta("a", "2", 2))
    outbox.put({"type": "response.output_text.done", "response_id": "a", "text": "12"})
    outbox.put(delta("a", "late", 3))
    events = await drained(outbox)
    assert [event.get("delta", event["type"]) for event in events] == [
        "12",
        "error",
        "response.output_text.done",
        "late",
    ]


async def test_a_delta_that_left_takes_nothing_more() -> None:
    outbox = Outbox(10)
    outbox.put(delta("a", "1", 1))
    sent = await outbox.get()
    outbox.put(delta("a", "2", 2))
    assert sent["delta"] == "1"
    assert (await outbox.get())["delta"] == "2"


async def test_a_full_outbox_says_so_and_takes_more() -> None:
    outbox = Outbox(2)
    fullness = []
    for _ in range(3):
        outbox.put({"type": "error"})
        fullness.append(outbox.full)
    assert fullness == [False, True, True]
    for _ in range(2):
        await outbox.get()
    assert not outbox.full


async def test_get_waits_for_an_event() -> None:
    outbox = Outbox(2)
    getting = asyncio.create_task(outbox.get())
    await asyncio.sleep(0)
    outbox.put({"type": "error"})
    assert await getting == {"type": "error"}


async def test_items_stand_for_a_response_that_events_do_not_name() -> None:
    """As in the Responses API, whose numbers never go back."""
    outbox = Outbox(10)

    def part(item: str, text: str, number: int, kind: str = "output_text") -> dict[str, Any]:
        return {"type": f"response.{kind}.delta", "item_id": item, "delta": text, "sequence_number": number}

    events = [part("a", "1", 1) | {"logprobs": [1]}, part("b", "2", 1), part("a", "3", 2) | {"logprobs": [2]}]
    for event in events:
        outbox.put(event)
    outbox.put({"type": "response.output_text.done", "item_id": "a", "sequence_number": 3})
    outbox.put(part("b", "4", 2, "reasoning_text"))
    assert events[0]["delta"] == "1"  # whoever made an event may keep it
    first, second, done, other = await drained(outbox)
    assert (first["delta"], first["sequence_number"], first["logprobs"]) == ("13", 1, [1, 2])
    assert (second["delta"], done["sequence_number"], other["delta"]) == ("2", 3, "4")


def arguments(item: str, text: str, seq: int) -> dict[str, Any]:
    return delta("a", text, seq) | {"type": "response.function_call_arguments.delta", "item_id": item}


async def test_kinds_and_items_are_not_mixed() -> None:
    outbox = Outbox(10)
    said = [delta("a", "1", 1), delta("a", "2", 2), arguments("x", "3", 3), arguments("x", "4", 4)]
    for event in [*said, arguments("y", "5", 5), arguments("x", "6", 6), delta("a", "7", 7)]:
        outbox.put(event)
    assert [event["delta"] for event in await drained(outbox)] == ["12", "34", "5", "6", "7"]


async def test_what_is_put_in_stays_as_it_is() -> None:
    """It may be kept elsewhere, to be sent again."""
    outbox = Outbox(10)
    first = delta("a", "1", 1)
    outbox.put(first)
    outbox.put(delta("a", "2", 2))
    assert first == delta("a", "1", 1)
    assert (await outbox.get())["delta"] == "12"


async def test_timings_are_kept() -> None:
    outbox = Outbox(10)
    for seq in (1, 2, 3):
        outbox.put(delta("a", "x", seq) | {"x_timing": [{"text_end": seq, "t_ms": seq * 10}]})
    assert [entry["text_end"] for entry in (await outbox.get())["x_timing"]] == [1, 2, 3]


async def test_clauses_neither_part_deltas_nor_pile_up() -> None:
    outbox = Outbox(4)
    for seq in range(1, 100):
        outbox.put(delta("a", "x", seq))
        outbox.put({"type": "x_response.clause", "response_id": "a", "index": seq})
    events = await drained(outbox)
    assert [event.get("delta", event.get("index")) for event in events] == ["x" * 99, 1, 2, 3]


async def test_traced_deltas_merge_with_their_steps() -> None:
    """Whatever waits, each step is told once, the newest with their trees."""
    outbox = Outbox(10)
    for seq in range(1, 5):
        tokens = letters("ab")
        counts = StepCounts()
        trace = chain_trace(tokens, ["x"], root=tokens[-1])
        counts.add(Piece(tokens=tuple(tokens), step=step_body(trace, seq, "best", TOKENIZER)))
        spans = ((1, "x"), (1, "")) if seq != 3 else None
        outbox.put(delta("a", "ab", seq) | {"x_spec": counts.take(spans)})
        if seq == 2:
            (early,) = await drained(outbox)
    (late,) = await drained(outbox)
    for event in (early, late):
        assert_traced([event | {"x_spec": event["x_spec"] | {"drafted": 2, "accepted": 2}}], 4)
    told = [(step["ms"], step["tree"] is None) for event in (early, late) for step in event["x_spec"]["steps"]]
    assert told == [(1, False), (2, False), (3, False), (4, False)]
    assert early["x_spec"]["spans"] == [[1, "x"], [1, ""]] * 2
    assert "spans" not in late["x_spec"]


async def test_a_delta_with_figures_joins_one_without() -> None:
    for first, second in ((True, False), (False, True), (False, False)):
        outbox = Outbox(10)
        for seq, has in enumerate((first, second), 1):
            event = delta("a", "x", seq)
            outbox.put(event if has else {key: value for key, value in event.items() if key != "x_spec"})
        (event,) = await drained(outbox)
        known = {"drafted": 1, "accepted": 1, "emitted": 2} if first or second else None
        assert event.get("x_spec") == known
