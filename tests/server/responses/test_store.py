"""What is kept of responses, for whom, how much and how long."""

from __future__ import annotations

import pytest

from paceline.server.api_errors import ApiError
from paceline.server.context import Settings
from paceline.server.responses.items import Message
from paceline.server.responses.store import ResponseStore, Stored, conversation, response_store


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def stored(name: str, text: str = "hi") -> Stored:
    written = Message(f"msg_{name}", "assistant", text)
    return Stored({"id": name, "output": [{"id": written.id}]}, (Message("u", "user", "x"), written))


def make(max_number: int = 10, max_chars: int = 10_000, clock: Clock | None = None) -> ResponseStore:
    return ResponseStore(max_number=max_number, max_chars=max_chars, lifetime_s=60, clock=clock or Clock())


def test_each_caller_sees_its_own() -> None:
    store = make()
    store.put("me", stored("a"))
    assert store.find("me", "a") is not None
    assert store.find("you", "a") is None
    assert store.item("me", "msg_a") == Message("msg_a", "assistant", "hi")
    assert store.item("you", "msg_a") is None
    assert store.item("me", "u") is None  # clients name their own items as they like
    assert not store.remove("you", "a")
    assert store.remove("me", "a")
    assert (store.find("me", "a"), store.item("me", "msg_a"), len(store)) == (None, None, 0)


def test_the_oldest_go_first() -> None:
    store = make(max_number=2)
    for name in "abc":
        store.put("me", stored(name))
    assert [store.find("me", name) is not None for name in "abc"] == [False, True, True]
    store = make(max_chars=1000)
    for name in "abc":
        store.put("me", stored(name, "z" * 400))
    assert [store.find("me", name) is not None for name in "abc"] == [False, True, True]
    store.put("me", stored("d", "z" * 2000))
    assert len(store) == 0


def test_all_go_when_their_time_is_over() -> None:
    clock = Clock()
    store = make(clock=clock)
    store.put("me", stored("a"))
    clock.now = 40
    store.put("me", stored("b"))
    clock.now = 70
    assert store.find("me", "a") is None
    assert store.item("me", "msg_a") is None
    assert store.find("me", "b") is not None
    clock.now = 101
    assert not store.remove("me", "b")


def test_a_conversation_goes_on() -> None:
    store = response_store(Settings())
    store.put("", stored("a"))
    more = Message("", "user", "more")
    assert conversation([more], None, lambda _: None) == (more,)
    assert conversation([more], "a", lambda name: store.find("", name)) == (*stored("a").items, more)
    with pytest.raises(ApiError) as gone:
        conversation([more], "b", lambda name: store.find("", name))
    assert (gone.value.status, gone.value.code) == (404, "previous_response_not_found")
