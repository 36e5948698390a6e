from __future__ import annotations

from typing import Any

import pytest

from paceline.engine.errors import RequestError
from paceline.server.api_errors import ApiError
from paceline.server.conversation import Conversation, Item, read_item
from paceline.server.fields import Fields


def message(role: str = "user", text: str = "hi", **extra: Any) -> Fields:
    kind = "output_text" if role == "assistant" else "input_text"
    return Fields({"type": "message", "role": role, "content": [{"type": kind, "text": text}], **extra}, "item")


def filled(*ids: str) -> Conversation:
    conversation = Conversation(max_items=10, max_chars=1000)
    for item_id in ids:
        conversation.add(Item(item_id, "user", item_id))
    return conversation


def test_an_item_is_read_and_shown() -> None:
    item = read_item(message("user", "hello"), "item_1")
    assert item.body() == {
        "id": "item_1",
        "object": "realtime.item",
        "type": "message",
        "status": "completed",
        "role": "user",
        "content": [{"type": "input_text", "text": "hello"}],
    }
    assert read_item(message("assistant", "x"), "i").body()["content"][0]["type"] == "output_text"
    assert read_item(message("developer", "x"), "i").role == "system"
    assert read_item(message(id="mine"), "i").id == "mine"


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (Fields({"type": "message", "content": []}, "item"), "item.role"),
        (Fields({"type": "message", "role": "user"}, "item"), "item.content"),
        (message(role="robot"), "item.role"),
        (message(id="x" * 65), "item.id"),
        (message(id=""), "item.id"),
        (message(id=7), "item.id"),
        (Fields({"role": "user", "content": [{"type": "input_text"}]}, "item"), "item.content[0].text"),
    ],
)
def test_bad_items_name_the_field(fields: Fields, param: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_item(fields, "i")
    assert caught.value.param == param


@pytest.mark.parametrize(
    "values",
    [
        {"type": "function_call", "name": "f"},
        {"type": "message", "role": "user", "content": [{"type": "input_audio", "audio": ""}]},
        {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": ""}]},
    ],
)
def test_other_kinds_are_unsupported(values: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as caught:
        read_item(Fields(values, "item"), "i")
    assert caught.value.code == "unsupported"


def test_items_go_where_they_are_told() -> None:
    conversation = filled("a", "b")
    assert conversation.add(Item("c", "user", "c"), "a") == "a"
    assert conversation.add(Item("d", "user", "d"), "root") is None
    assert conversation.add(Item("e", "user", "e")) == "b"
    assert [item.id for item in conversation] == ["d", "a", "c", "b", "e"]


@pytest.mark.parametrize(
    ("item", "after", "code"),
    [
        (Item("a", "user", "again"), None, "item_exists"),
        (Item("b", "user", "b"), "nowhere", "item_not_found"),
        (Item("b", "user", "x" * 2000), None, "conversation_full"),
    ],
)
def test_what_cannot_be_added_changes_nothing(item: Item, after: str | None, code: str) -> None:
    conversation = filled("a")
    with pytest.raises(RequestError) as caught:
        conversation.add(item, after)
    assert caught.value.code == code
    assert [item.id for item in conversation] == ["a"]


def test_the_number_of_items_is_bounded_but_never_for_the_model() -> None:
    conversation = filled(*"abcdefghij")
    with pytest.raises(RequestError, match="full"):
        conversation.add(Item("k", "user", ""))
    assert conversation.add_reply(Item("k", "assistant", ""), conversation.last) == "j"


def test_a_reply_stands_behind_what_was_last_when_it_was_asked_for() -> None:
    conversation = filled()
    assert conversation.last is None
    gone = Item("gone", "user", "")
    for item in (Item("a", "user", ""), gone, Item("b", "user", "")):
        conversation.add(item)
    assert conversation.add_reply(Item("c", "assistant", ""), conversation.find("a")) == "a"
    conversation.remove(gone)
    assert conversation.add_reply(Item("d", "assistant", ""), gone) == "b"
    assert conversation.add_reply(Item("e", "assistant", ""), None) is None
    assert [item.id for item in conversation] == ["e", "a", "c", "b", "d"]


def test_a_removed_item_is_gone() -> None:
    conversation = filled("a", "b")
    item = conversation.find("a")
    conversation.remove(item)
    with pytest.raises(RequestError, match="no item 'a'"):
        conversation.find("a")


def test_replies_cut_off_before_their_first_word_are_not_repeated_to_the_model() -> None:
    conversation = filled("a")
    conversation.add_reply(Item("b", "assistant", "", "incomplete"), conversation.last)
    conversation.add_reply(Item("c", "assistant", "half", "incomplete"), conversation.last)
    assert conversation.messages() == [{"role": "user", "content": "a"}, {"role": "assistant", "content": "half"}]
