from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from paceline.server.conversation import Conversation
from paceline.server.items import FunctionCall, Message, Status
from paceline.server.reply_parts import CallArguments, CallBegin, Part, Thought, Words
from paceline.server.response_output import DELTAS, ResponseOutput

PARTS: list[Part] = [
    Thought("I think. "),
    Words("Let me look."),
    CallBegin(0, "call_a", "weather"),
    CallArguments(0, '{"city":'),
    CallArguments(0, '"Rome"}'),
    CallBegin(1, "call_b", "time"),
    CallArguments(1, "{}"),
    Words("Done."),
]


def output(conversation: Conversation | None = None) -> ResponseOutput:
    numbers = itertools.count(1)
    return ResponseOutput("resp", lambda prefix: f"{prefix}_{next(numbers)}", conversation=conversation, after=None)


def events_of(out: ResponseOutput, parts: list[Part], status: Status = "completed") -> list[dict[str, Any]]:
    return [event for part in parts for event in out.take(part)] + out.close(status)


def test_items_come_one_after_the_other() -> None:
    out = output()
    events = events_of(out, PARTS)
    assert [event["type"].removeprefix("response.") for event in events] == [
        "x_response.reasoning.delta",
        "x_response.reasoning.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert [event["output_index"] for event in events if event["type"].endswith("item.added")] == [0, 1, 2, 3]
    assert all(event["response_id"] == "resp" for event in events)
    first, call, _, last = out.items
    assert isinstance(first, Message)
    assert (first.text, first.thought) == ("Let me look.", "I think. ")
    assert isinstance(call, FunctionCall)
    assert (call.name, call.call_id, call.arguments) == ("weather", "call_a", '{"city":"Rome"}')
    assert isinstance(last, Message)
    assert last.text == "Done."
    done = next(event for event in events if event["type"] == "response.function_call_arguments.done")
    assert (done["name"], done["call_id"], done["arguments"]) == ("weather", "call_a", '{"city":"Rome"}')


def _cut_anywhere(part: Part, chance: random.Random) -> list[Part]:
    if isinstance(part, CallBegin):
        return [part]
    place = chance.randint(0, len(part.text))
    halves = [text for text in (part.text[:place], part.text[place:]) if text]
    if isinstance(part, CallArguments):
        return [CallArguments(part.index, text) for text in halves]
    return [type(part)(text) for text in halves]


@pytest.mark.parametrize("seed", range(20))
def test_where_parts_are_cut_changes_no_item(seed: int) -> None:
    chance = random.Random(seed)
    whole, pieces = output(), output()
    events_of(whole, PARTS)
    events = events_of(pieces, [piece for part in PARTS for piece in _cut_anywhere(part, chance)])
    assert [item.body() for item in pieces.items] == [item.body() for item in whole.items]
    for item in pieces.items:
        deltas = [event["delta"] for event in events if event["type"] in DELTAS and event.get("item_id") == item.id]
        assert "".join(deltas) == (item.text if isinstance(item, Message) else getattr(item, "arguments", None))


@pytest.mark.parametrize(
    ("parts", "status", "expected"),
    [
        (PARTS[:5], "completed", ["completed", "completed"]),
        (PARTS[:4], "incomplete", ["completed", "incomplete"]),
        (PARTS[:4], "completed", ["completed", "incomplete"]),  # the model broke off: nothing can be called
        (PARTS[:2], "incomplete", ["incomplete"]),
        ([], "incomplete", ["incomplete"]),
        (PARTS[:1], "completed", ["completed"]),
    ],
)
def test_how_the_last_item_ends(parts: list[Part], status: Status, expected: list[str]) -> None:
    out = output()
    events_of(out, parts, status)
    assert [item.status for item in out.items] == expected


def test_items_stand_in_the_conversation_in_their_order() -> None:
    conversation = Conversation(max_items=10, max_chars=1000)
    out = output(conversation)
    events = out.take(PARTS[1]) + out.take(PARTS[2])
    conversation.add(Message(id="late", role="user", text="and"))
    events += [event for part in PARTS[3:] for event in out.take(part)] + out.close("completed")
    assert [item.id for item in conversation] == ["item_1", "item_2", "item_3", "item_4", "late"]
    added = [event["previous_item_id"] for event in events if event["type"] == "conversation.item.added"]
    done = [event["previous_item_id"] for event in events if event["type"] == "conversation.item.done"]
    assert added == done == [None, "item_1", "item_2", "item_3"]


def test_figures_without_text_have_a_place() -> None:
    out = output()
    assert [event["type"] for event in out.rest()][-1] == "response.output_text.delta"
    out.take(PARTS[2])
    (event,) = out.rest()
    assert (event["type"], event["delta"]) == ("response.function_call_arguments.delta", "")
