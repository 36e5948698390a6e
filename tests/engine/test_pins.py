"""Whose blocks are pinned: chains that share, end and follow one another."""

from __future__ import annotations

import random

import pytest

from paceline.engine.pins import Pins


def made(**chains: list[int]) -> Pins:
    pins = Pins()
    for owner, chain in chains.items():
        assert pins.set(owner, chain) == []
    return pins


def test_a_pin_replaces_the_owners_former_one() -> None:
    pins = made(a=[1, 2, 3])
    assert pins.set("a", [1, 2, 4]) == [3]
    assert sorted(pins) == [1, 2, 4]
    assert pins.set("a", []) == [1, 2, 4]
    assert sorted(pins) == []
    assert pins.set("a", []) == []
    pins.check()


def test_a_shared_block_is_let_go_by_the_last_owner() -> None:
    pins = made(a=[1, 2], b=[1, 3])
    assert pins.set("a", []) == [2]
    assert 1 in pins
    assert pins.set("b", [1]) == [3]
    assert pins.set("b", []) == [1]
    assert 1 not in pins


def test_the_oldest_is_the_one_set_least_recently() -> None:
    pins = made(a=[1], b=[2], c=[3])
    assert pins.oldest == "a"
    pins.set("a", [1])
    assert pins.oldest == "b"
    pins.set("b", [])
    assert pins.oldest == "c"
    pins.forget(1)  # of a: no reason to be younger or older
    assert pins.oldest == "c"


def test_every_chain_ends_before_a_block_that_lost_its_content() -> None:
    pins = made(a=[1, 2, 3], b=[1, 2, 4, 5], c=[2, 3], d=[6])
    assert sorted(pins.forget(2)) == [2, 3, 4, 5]
    assert sorted(pins) == [1, 6]
    assert pins.forget(2) == []
    pins.check()
    assert pins.set("a", []) == []  # b has it still
    assert pins.set("b", []) == [1]
    assert pins.oldest == "d"


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda pins: pins._owners.pop(1), id="an owner too few"),
        pytest.param(lambda pins: pins._owners[1].add("z"), id="an owner too many"),
        pytest.param(lambda pins: pins._chains.update(b=()), id="an empty chain"),
        pytest.param(lambda pins: pins._chains.update(a=(1, 1)), id="a block twice"),
    ],
)
def test_check_finds_books_that_do_not_balance(spoil: object) -> None:
    pins = made(a=[1])
    spoil(pins)  # type: ignore[operator]
    with pytest.raises(AssertionError):
        pins.check()


def test_random_use_keeps_the_books() -> None:
    pick, pins = random.Random(3), Pins()
    chains: dict[str, list[int]] = {}
    for _ in range(500):
        owner = pick.choice("abcdef")
        before = {block for chain in chains.values() for block in chain}
        if pick.random() < 0.7:
            chains[owner] = pick.sample(range(20), pick.randint(0, 6))
            left = pins.set(owner, chains[owner])
        else:
            block = pick.randrange(20)
            chains = {o: chain[: chain.index(block)] if block in chain else chain for o, chain in chains.items()}
            left = pins.forget(block)
        after = {block for chain in chains.values() for block in chain}
        assert (set(pins), set(left), len(left)) == (after, before - after, len(before - after))
        pins.check()
