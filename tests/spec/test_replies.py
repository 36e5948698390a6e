from __future__ import annotations

from collections.abc import Sequence

from paceline.spec.automaton import ROOT
from paceline.spec.replies import START, Replies, ReplyStore


def known(store: ReplyStore, key: str, tokens: Sequence[int]) -> bool:
    found = False
    for automaton in store.find(key):
        state: int | None = ROOT
        for token in tokens:
            state = automaton.after[state].get(token) if state is not None else None
        found = found or state is not None
    return found


def filled(store: ReplyStore, *replies: tuple[str, Sequence[int]]) -> ReplyStore:
    for key, tokens in replies:
        store.put(key, tokens)
        while store.work():
            pass
    return store


def test_replies_are_found_under_their_own_key_alone() -> None:
    store = filled(ReplyStore(), ("a", (1, 2, 3)), ("b", (4, 5)))
    assert known(store, "a", (START, 1, 2, 3))
    assert known(store, "b", (START, 4, 5))
    assert not known(store, "a", (4,))
    assert not known(store, "b", (1,))
    assert not known(store, "c", (1,))


def test_nothing_is_known_before_it_is_indexed() -> None:
    store = ReplyStore()
    store.put("a", (1, 2, 3))
    assert not known(store, "a", (1,))
    assert (store.work(), store.work()) == (4, 0)
    assert known(store, "a", (1,))


def test_the_oldest_replies_of_a_key_make_room() -> None:
    store = ReplyStore(room=40, total=1000)
    for i in range(30):
        filled(store, ("a", (1000 + i, 2000 + i)))
        assert known(store, "a", (1000 + i, 2000 + i))
        assert sum(automaton.size for automaton in store.find("a")) <= 40
    assert known(store, "a", (1024,))  # at least half the room is kept
    assert not known(store, "a", (1010,))


def test_the_key_not_used_for_longest_makes_room() -> None:
    store = filled(ReplyStore(room=20, total=40), *((key, [ord(key)] * 9) for key in "abcd"))
    assert known(store, "a", [ord("a")])  # a is used
    filled(store, ("e", [ord("e")] * 9))
    assert [key for key in "abcde" if known(store, key, [ord(key)])] == ["a", "c", "d", "e"]


def test_of_a_reply_that_is_too_long_the_beginning_is_kept() -> None:
    replies = Replies(room=20)
    replies.add(range(100))
    assert [automaton.size for automaton in replies.automata][-1] == 10
    assert replies.size <= 20


def test_what_waits_is_bounded_too() -> None:
    store = ReplyStore(room=20, total=40)
    for i in range(10):
        store.put("a", [i] * 10)
    worked = 0
    while indexed := store.work():
        worked += indexed
    assert worked == 4 * 11
