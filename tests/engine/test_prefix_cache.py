"""Blocks are found by exactly the tokens that led to them."""

from __future__ import annotations

import dataclasses

import pytest

from paceline.engine.prefix_cache import ROOT, PrefixCache, chain_key
from paceline.kernels.paging import BLOCK_SIZE

A, B, C = ([start + i for i in range(BLOCK_SIZE)] for start in (0, 100, 200))


def found(cache: PrefixCache, tokens: list[int]) -> list[int]:
    return [block for block, _ in cache.match(tokens)]


@pytest.fixture
def cache() -> PrefixCache:
    """Blocks 10 and 11 hold A then B."""
    cache = PrefixCache()
    cache.publish(11, cache.publish(10, ROOT, A), B)
    return cache


def test_the_longest_run_of_full_blocks_is_found(cache: PrefixCache) -> None:
    assert found(cache, A + B + C) == [10, 11]
    assert found(cache, A + B) == [10, 11]
    assert found(cache, A + C) == [10]
    assert found(cache, (A + B)[:-1]) == [10]
    assert found(cache, A[:-1]) == []
    assert found(cache, []) == []


def test_keys_of_a_match_are_those_of_the_chain(cache: PrefixCache) -> None:
    first = chain_key(ROOT, A)
    assert cache.match(A + B) == [(10, first), (11, chain_key(first, B))]


def test_the_same_tokens_after_another_prefix_are_another_block(cache: PrefixCache) -> None:
    assert found(cache, B) == []
    assert found(cache, B + B) == []
    cache.publish(12, cache.publish(13, ROOT, C), B)
    assert found(cache, C + B) == [13, 12]
    assert found(cache, A + B) == [10, 11]


@pytest.mark.parametrize("position", [0, 7, BLOCK_SIZE - 1, BLOCK_SIZE, 2 * BLOCK_SIZE - 1])
def test_one_other_token_is_a_miss_from_its_block_on(cache: PrefixCache, position: int) -> None:
    tokens = A + B
    tokens[position] += 1
    assert found(cache, tokens) == [10, 11][: position // BLOCK_SIZE]


def test_of_two_equal_blocks_the_first_stays(cache: PrefixCache) -> None:
    key = cache.publish(20, ROOT, A)
    assert key == chain_key(ROOT, A)
    assert found(cache, A) == [10]
    assert 20 not in cache
    cache.forget(20)  # never published: no effect
    assert found(cache, A) == [10]


def test_a_forgotten_block_is_not_found_and_hides_what_follows(cache: PrefixCache) -> None:
    cache.forget(10)
    assert 10 not in cache
    assert 11 in cache
    assert found(cache, A + B) == []
    cache.publish(30, ROOT, A)  # computed again, elsewhere: the old follower is right again
    assert found(cache, A + B) == [30, 11]
    cache.forget(11)
    assert found(cache, A + B) == [30]
    cache.forget(11)


def test_tokens_are_verified_behind_the_hash(cache: PrefixCache) -> None:
    """A colliding key: the entry is there, but with other tokens or after another prefix."""
    key = chain_key(ROOT, A)
    entry = cache._by_key[key]
    for wrong in ({"tokens": tuple(B)}, {"parent": b"other"}):
        cache._by_key[key] = dataclasses.replace(entry, **wrong)  # type: ignore[arg-type]
        assert found(cache, A + B) == []


def test_large_ids_do_not_collide() -> None:
    assert chain_key(ROOT, [2**31] * BLOCK_SIZE) != chain_key(ROOT, [0] * BLOCK_SIZE)
    assert chain_key(ROOT, [256, 0]) != chain_key(ROOT, [0, 256])
