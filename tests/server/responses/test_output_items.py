"""The items of a response, from their first event to what is remembered of them."""

from __future__ import annotations

import pytest

from paceline.server.responses.items import Call, Message
from paceline.server.responses.output_items import Calls, OutputItem, Thoughts, Words

MAKE = {
    "message": lambda: Words("i", 2),
    "reasoning": lambda: Thoughts("i", 2),
    "function_call": lambda: Calls("i", 2, "call_1", "look"),
}


@pytest.mark.parametrize("kind", MAKE)
def test_opened_written_closed(kind: str) -> None:
    item: OutputItem = MAKE[kind]()
    opened = item.opened()
    assert opened[0]["type"] == "response.output_item.added"
    assert (opened[0]["item"]["type"], opened[0]["item"]["status"]) == (kind, "in_progress")
    deltas = [item.added(text, [], {}) for text in ("{", "}")]
    closed = item.closed("completed")
    assert closed[-1] == {"type": "response.output_item.done", "output_index": 2, "item": item.body()}
    assert item.body()["status"] == "completed"
    whole = closed[0].get("text") or closed[0]["arguments"]
    assert "".join(delta["delta"] for delta in deltas) == whole == "{}"
    for event in (*opened[1:], *deltas, *closed[:-1]):
        assert (event["item_id"], event["output_index"]) == ("i", 2)


def test_a_message_shows_its_part_once_it_was_announced() -> None:
    item = Words("i", 0)
    added, part = item.opened()
    assert added["item"]["content"] == []
    assert part["part"] == {"type": "output_text", "text": "", "annotations": [], "logprobs": []}


def test_logprobs_stay_with_the_text() -> None:
    item = Words("i", 0)
    item.opened()
    item.added("a", [{"token": "a"}], {})
    item.added("b", [{"token": "b"}], {})
    assert item.body()["content"][0]["logprobs"] == [{"token": "a"}, {"token": "b"}]
    assert item.closed("completed")[0]["logprobs"] == [{"token": "a"}, {"token": "b"}]


def test_what_is_remembered() -> None:
    call, words, thought = Calls("i", 0, "call_1", "look"), Words("j", 1), Thoughts("k", 2)
    assert [item.kept() for item in (call, words, thought)] == [None, None, None]
    for item in (call, words, thought):
        item.added("{}", [], {})
    words.closed("incomplete")
    call.closed("incomplete")
    assert words.kept() == Message("j", "assistant", "{}")
    assert call.kept() is None
    call.closed("completed")
    assert call.kept() == Call("i", "call_1", "look", "{}")
    assert call.stub() == {"type": "function_call_output", "call_id": "call_1", "name": "look"}
    thought.closed("completed")
    assert thought.kept() is None
