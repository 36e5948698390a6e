"""Blocks: three states, counted references, one order of eviction."""

from __future__ import annotations

import random

import pytest

from paceline.engine.block_pool import BlockPool


class Findable:
    """Which blocks have content that can be found again; forgets what the pool evicts."""

    def __init__(self) -> None:
        self.blocks: set[int] = set()
        self.evicted: list[int] = []

    def evict(self, block: int) -> None:
        self.blocks.remove(block)
        self.evicted.append(block)


@pytest.fixture
def findable() -> Findable:
    return Findable()


@pytest.fixture
def pool(findable: Findable) -> BlockPool:
    return BlockPool(6, findable.evict)


def states(pool: BlockPool) -> tuple[int, int, int]:
    return pool.free, pool.cached, pool.held


def give_back(pool: BlockPool, findable: Findable, blocks: list[int], *, content: bool) -> None:
    if content:
        findable.blocks.update(blocks)
    pool.give_back(blocks, findable.blocks.__contains__)


def test_a_new_pool_is_free(pool: BlockPool) -> None:
    assert states(pool) == (6, 0, 0)
    assert pool.available == pool.total == 6
    pool.check([])


def test_taken_blocks_are_held_and_distinct(pool: BlockPool) -> None:
    one, other = pool.take(2), pool.take(3)
    assert one == [0, 1]  # low numbers first
    assert not set(one) & set(other)
    assert states(pool) == (1, 0, 5)
    assert pool.take(0) == []
    pool.check([one, other])


def test_given_back_without_content_is_free_with_content_cached(pool: BlockPool, findable: Findable) -> None:
    blocks = pool.take(4)
    give_back(pool, findable, blocks[:1], content=False)
    give_back(pool, findable, blocks[1:], content=True)
    assert states(pool) == (3, 3, 0)
    assert pool.available == 6


def test_a_shared_block_is_idle_only_when_the_last_holder_leaves(pool: BlockPool, findable: Findable) -> None:
    (block,) = pool.take(1)
    pool.share(block)
    pool.check([[block], [block]])
    give_back(pool, findable, [block], content=True)
    assert states(pool) == (5, 0, 1)
    give_back(pool, findable, [block], content=True)
    assert states(pool) == (5, 1, 0)
    pool.share(block)  # out of the cache again
    assert states(pool) == (5, 0, 1)
    pool.check([[block]])


def test_a_free_block_has_nothing_to_share(pool: BlockPool) -> None:
    with pytest.raises(KeyError):
        pool.share(3)


def test_free_blocks_go_first_then_the_one_idle_for_longest(pool: BlockPool, findable: Findable) -> None:
    blocks = pool.take(5)
    give_back(pool, findable, [blocks[3], blocks[1], blocks[4]], content=True)
    assert pool.take(1) == [5]
    assert findable.evicted == []
    assert pool.take(2) == [blocks[1], blocks[3]]
    assert findable.evicted == [blocks[3], blocks[1]]


def test_use_makes_a_cached_block_young_again(pool: BlockPool, findable: Findable) -> None:
    blocks = pool.take(6)
    give_back(pool, findable, blocks, content=True)
    pool.share(blocks[0])
    give_back(pool, findable, [blocks[0]], content=True)
    pool.take(6)
    assert findable.evicted == [*blocks[1:], blocks[0]]


def test_keep_free_evicts_no_more_than_asked_and_stops_when_nothing_is_left(
    pool: BlockPool, findable: Findable
) -> None:
    blocks = pool.take(5)
    give_back(pool, findable, blocks[:3], content=True)
    pool.keep_free(1)
    assert findable.evicted == []
    pool.keep_free(3)
    assert findable.evicted == blocks[:2]
    assert states(pool) == (3, 1, 2)
    pool.keep_free(6)
    assert states(pool) == (4, 0, 2)


def test_too_much_changes_nothing(pool: BlockPool, findable: Findable) -> None:
    blocks = pool.take(4)
    give_back(pool, findable, blocks[:1], content=True)
    with pytest.raises(IndexError, match="4 blocks wanted, 3 available"):
        pool.take(4)
    assert states(pool) == (2, 1, 3)
    assert findable.evicted == []


def test_drop_frees_a_cached_block_and_leaves_a_held_one(pool: BlockPool, findable: Findable) -> None:
    blocks = pool.take(2)
    give_back(pool, findable, blocks[:1], content=True)
    pool.drop(blocks[0])
    pool.drop(blocks[1])
    pool.drop(5)  # free already
    assert states(pool) == (5, 0, 1)
    pool.check([blocks[1:]])


def test_pinned_blocks_are_evicted_after_all_others_the_oldest_pin_as_a_whole(
    pool: BlockPool, findable: Findable
) -> None:
    blocks = pool.take(6)
    give_back(pool, findable, blocks[::-1], content=True)
    pool.pin("old", blocks[:2])
    pool.pin("young", blocks[2:4])
    assert (states(pool), pool.pinned) == ((0, 6, 0), 4)
    pool.keep_free(2)
    assert findable.evicted == [blocks[5], blocks[4]]
    pool.keep_free(3)
    assert (findable.evicted[2:], pool.pinned) == ([blocks[1]], 2)  # the tail first, and its head is as any other now
    pool.keep_free(4)
    assert (findable.evicted[3:], pool.pinned) == ([blocks[0]], 2)
    pool.check([])
    assert pool.take(6)
    assert findable.evicted[4:] == [blocks[3], blocks[2]]


def test_a_block_of_two_pins_stays_until_both_are_lifted(pool: BlockPool, findable: Findable) -> None:
    blocks = pool.take(3)
    give_back(pool, findable, blocks[::-1], content=True)
    pool.pin("old", blocks[:2])
    pool.pin("young", [blocks[0], blocks[2]])
    pool.keep_free(4)
    assert (findable.evicted, pool.pinned) == ([blocks[1]], 2)
    pool.pin("young", [])
    assert (pool.pinned, pool.cached) == (0, 2)
    pool.check([])


def test_a_held_block_may_be_pinned_and_is_counted_once_it_is_idle(pool: BlockPool, findable: Findable) -> None:
    blocks = pool.take(2)
    pool.pin("a", blocks[:1])
    assert (states(pool), pool.pinned) == ((4, 0, 2), 0)
    give_back(pool, findable, blocks, content=True)
    assert (states(pool), pool.pinned) == ((4, 2, 0), 1)
    pool.share(blocks[0])
    assert (states(pool), pool.pinned) == ((4, 1, 1), 0)
    pool.pin("a", [])
    pool.check([blocks[:1]])
    give_back(pool, findable, blocks[:1], content=True)
    assert (states(pool), pool.pinned) == ((4, 2, 0), 0)


def test_what_lost_its_content_is_pinned_no_more_nor_is_what_follows_it(pool: BlockPool, findable: Findable) -> None:
    blocks = pool.take(4)
    give_back(pool, findable, blocks[2::-1], content=True)
    pool.pin("a", blocks)
    pool.drop(blocks[1])
    assert (states(pool), pool.pinned) == ((3, 2, 1), 1)
    pool.check([blocks[3:]])


@pytest.mark.parametrize(
    "holders",
    [
        pytest.param([], id="a leak"),
        pytest.param([[0, 1], [1]], id="a block held without a reference"),
        pytest.param([[0]], id="a lost block"),
        pytest.param([[0, 2]], id="another block"),
    ],
)
def test_check_finds_books_that_do_not_balance(pool: BlockPool, holders: list[list[int]]) -> None:
    pool.take(2)
    with pytest.raises(AssertionError, match="references differ"):
        pool.check(holders)


@pytest.mark.parametrize("seed", range(3))
def test_random_use_keeps_every_block_in_one_state(seed: int) -> None:
    pick, findable = random.Random(seed), Findable()
    pool = BlockPool(12, findable.evict)
    holders: list[list[int]] = []
    for _ in range(400):
        action = pick.random()
        findable_now = sorted(findable.blocks)
        if action < 0.1:
            pool.pin(pick.choice("abc"), pick.sample(findable_now, pick.randint(0, len(findable_now))))
        elif action < 0.4 and pool.available:
            holders.append(pool.take(pick.randint(1, pool.available)))
        elif action < 0.6 and holders:
            holders.append(list(pick.choice(holders)))
            for block in holders[-1]:
                pool.share(block)
        elif action < 0.9 and holders:
            blocks = holders.pop(pick.randrange(len(holders)))
            findable.blocks.update(block for block in blocks if pick.random() < 0.5)
            pool.give_back(blocks, findable.blocks.__contains__)
        elif cached := [block for block in findable.blocks if not any(block in blocks for blocks in holders)]:
            findable.blocks.remove(block := pick.choice(cached))
            pool.drop(block)
        pool.check(holders)
        assert pool.cached == len([b for b in findable.blocks if not any(b in blocks for blocks in holders)])
