from __future__ import annotations

import pytest

from paceline.engine.errors import RequestError
from paceline.server.conversation import Conversation
from paceline.server.items import FunctionCall, FunctionCallOutput, Item, Message, chat_messages


def user(item_id: str, text: str = "") -> Message:
    return Message(id=item_id, role="user", text=text)


def filled(*ids: str) -> Conversation:
    conversation = Conversation(max_items=10, max_chars=1000)
    for item_id in ids:
        conversation.add(user(item_id, item_id))
    return conversation


def ids(conversation: Conversation) -> list[str]:
    return [item.id for item in conversation]


def test_items_go_where_they_are_told() -> None:
    conversation = filled("a", "b")
    assert conversation.add(user("c"), "a") == "a"
    assert conversation.add(user("d"), "root") is None
    assert conversation.add(user("e")) == "b"
    assert ids(conversation) == ["d", "a", "c", "b", "e"]


@pytest.mark.parametrize(
    ("item", "after", "code"),
    [
        (user("a", "again"), None, "item_exists"),
        (user("b", "b"), "nowhere", "item_not_found"),
        (user("b", "x" * 2000), None, "conversation_full"),
        (FunctionCallOutput(id="b", call_id="c", output="x"), None, "call_not_found"),
    ],
)
def test_what_cannot_be_added_changes_nothing(item: Item, after: str | None, code: str) -> None:
    conversation = filled("a")
    version = conversation.version
    with pytest.raises(RequestError) as caught:
        conversation.add(item, after)
    assert caught.value.code == code
    assert (ids(conversation), conversation.version) == (["a"], version)


def test_an_output_follows_its_call() -> None:
    conversation = filled("a")
    conversation.add(FunctionCall(id="b", call_id="c", name="f", arguments="{}"))
    assert conversation.add(FunctionCallOutput(id="d", call_id="c", output="x")) == "b"


def test_the_number_of_items_is_bounded_but_never_for_the_model() -> None:
    conversation = filled(*"abcdefghij")
    with pytest.raises(RequestError, match="full"):
        conversation.add(user("k"))
    assert conversation.add_reply(Message(id="k", role="assistant"), conversation.last) == "j"


def test_a_reply_stands_behind_what_was_last_when_it_was_asked_for() -> None:
    conversation = filled()
    assert conversation.last is None
    gone = user("gone")
    for item in (user("a"), gone, user("b")):
        conversation.add(item)
    assert conversation.add_reply(Message(id="c", role="assistant"), conversation.find("a")) == "a"
    conversation.remove(gone)
    assert conversation.add_reply(Message(id="d", role="assistant"), gone) == "b"
    assert conversation.add_reply(Message(id="e", role="assistant"), None) is None
    assert ids(conversation) == ["e", "a", "c", "b", "d"]


def test_a_removed_item_is_gone() -> None:
    conversation = filled("a", "b")
    item = conversation.find("a")
    conversation.remove(item)
    with pytest.raises(RequestError, match="no item 'a'"):
        conversation.find("a")
    assert conversation.before(item) is None


def test_a_message_is_cut_to_its_beginning() -> None:
    conversation = filled()
    reply = Message(id="a", role="assistant", text="né😀b")
    conversation.add(reply)
    conversation.cut(reply, 4)
    assert (reply.text, reply.status) == ("né😀b", "completed")
    conversation.cut(reply, 3)
    assert (reply.text, reply.status) == ("né😀", "incomplete")
    assert chat_messages(conversation) == [{"role": "assistant", "content": "né😀"}]


def test_every_change_has_a_version() -> None:
    conversation = filled()
    versions = [conversation.version]
    reply = Message(id="a", role="assistant", text="abc")
    for change in (
        lambda: conversation.add_reply(reply, None),
        lambda: conversation.cut(reply, 1),
        lambda: conversation.add(user("b")),
        lambda: conversation.remove(reply),
    ):
        change()
        versions.append(conversation.version)
    assert len(set(versions)) == 5
