from __future__ import annotations

from collections.abc import Sequence

from paceline.spec.automaton import ROOT
from paceline.spec.replies import START, ReplyStore


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
        while store.work(1000):
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
    assert (store.work(1000), store.work(1000)) == (4, 0)
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
    store = filled(ReplyStore(room=20), ("a", range(100)))
    assert [automaton.size for automaton in store.find("a")][-1] == 10
    assert sum(automaton.size for automaton in store.find("a")) <= 20
    assert known(store, "a", (START, *range(9)))


def test_a_long_reply_is_indexed_in_portions_and_goes_on_where_it_stopped() -> None:
    whole, store = filled(ReplyStore(room=40), ("a", range(8)), ("a", range(50, 65))), ReplyStore(room=40)
    for tokens in (range(8), range(50, 65)):
        store.put("a", tokens)
    worked = [store.work(7) for _ in range(6)]
    assert worked == [7, 2, 7, 7, 2, 0]
    assert [automaton.after for automaton in store.find("a")] == [automaton.after for automaton in whole.find("a")]


def test_what_is_dropped_half_indexed_takes_nothing_from_the_next() -> None:
    store = ReplyStore(room=200, total=100)
    store.put("a", range(60))
    assert store.work(30) == 30
    store.put("b", range(60))  # no room for both to wait
    assert (store.work(1000), store.work(1000)) == (61, 0)
    assert known(store, "b", (START, *range(60)))
    assert not known(store, "a", (40,))


def test_what_waits_is_bounded_too() -> None:
    store = ReplyStore(room=20, total=40)
    for i in range(10):
        store.put("a", [i] * 10)
    worked = 0
    while indexed := store.work(1000):
        worked += indexed
    assert worked == 4 * 10
