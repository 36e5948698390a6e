"""Slots of a sequence from admission to release: what is shared, kept, moved, published and given back."""

from __future__ import annotations

from collections.abc import Sequence as Seq

import pytest
from fakes import make_request

from paceline.engine.page_table import PageTable, blocks_for
from paceline.engine.sequence import Sequence
from paceline.kernels.paging import BLOCK_SIZE

PROMPT = list(range(1000, 1000 + 3 * BLOCK_SIZE))


def sequence(tokens: Seq[int], name: str = "r") -> Sequence:
    return Sequence(make_request(name, tokens), arrival=0)


def computed(pages: PageTable, tokens: Seq[int], name: str = "r") -> Sequence:
    """A sequence whose tokens are all computed, what the cache holds of it shared."""
    seq = sequence(tokens, name)
    pages.admit(seq)
    assert pages.reserve(seq, seq.pending)
    assert pages.commit(seq, range(seq.pending)) == []
    return seq


def hits(pages: PageTable, tokens: Seq[int]) -> int:
    """Tokens a new sequence of these finds; leaves the cache as it was."""
    probe = sequence(tokens, "probe")
    found = pages.admit(probe)
    pages.release(probe)
    return found


@pytest.mark.parametrize(("slots", "blocks"), [(0, 0), (1, 1), (16, 1), (17, 2), (32, 2), (33, 3)])
def test_blocks_for_rounds_up(slots: int, blocks: int) -> None:
    assert blocks_for(slots) == blocks


def test_slots_follow_the_block_table() -> None:
    seq = sequence(PROMPT)
    seq.blocks = [7, 2, 5]
    assert [PageTable.slot(seq, index) for index in (0, 15, 16, 31, 32, 47)] == [112, 127, 32, 47, 80, 95]


def test_reserve_takes_what_is_missing_or_nothing() -> None:
    pages = PageTable(4)
    seq = sequence(PROMPT)
    assert pages.room(seq) == 64
    assert pages.reserve(seq, 17)
    assert len(seq.blocks) == 2
    assert pages.reserve(seq, 32)  # fits in what it has
    assert len(seq.blocks) == 2
    assert not pages.reserve(seq, 65)
    assert len(seq.blocks) == 2
    assert pages.room(seq) == 64
    assert pages.reserve(seq, 64)
    assert pages.pool.free == 0
    pages.check([seq])


def test_room_counts_from_the_computed_slots() -> None:
    pages = PageTable(4)
    seq = computed(pages, PROMPT[:20])
    other = computed(pages, [1] * BLOCK_SIZE)
    assert pages.room(seq) == 12 + BLOCK_SIZE
    pages.release(other)  # cached now, which is as good as free
    assert pages.room(seq) == 12 + 2 * BLOCK_SIZE


def test_spare_blocks_are_out_of_reach_of_reserve() -> None:
    pages = PageTable(5, spare=2)
    seq = sequence(PROMPT)
    assert pages.room(seq) == 3 * BLOCK_SIZE
    assert not pages.reserve(seq, 3 * BLOCK_SIZE + 1)
    assert pages.reserve(seq, 3 * BLOCK_SIZE)
    assert pages.pool.free == 2
    assert pages.spare_room(seq, 3 * BLOCK_SIZE + 5) == 3 * BLOCK_SIZE + 5
    pages.commit(seq, range(3 * BLOCK_SIZE))
    assert pages.pool.free == 2  # the guesses' block is back


def test_reserve_evicts_so_that_the_spare_blocks_stay_free() -> None:
    pages = PageTable(5, spare=2)
    pages.release(computed(pages, PROMPT))  # 3 cached, 2 free
    seq = sequence([1] * 40)
    assert pages.reserve(seq, 17)
    assert (pages.pool.free, pages.pool.cached, pages.pool.held) == (2, 1, 2)


def test_guesses_get_free_slots_and_never_cached_ones() -> None:
    pages = PageTable(4)
    pages.release(computed(pages, PROMPT[: 2 * BLOCK_SIZE]))  # 2 cached, 2 free
    seq = sequence([1, 2, 3])
    pages.reserve(seq, 3)
    assert pages.spare_room(seq, 5) == 5  # within its block
    assert len(seq.blocks) == 1
    assert pages.spare_room(seq, 60) == 2 * BLOCK_SIZE  # the last free block, no more
    assert (pages.pool.free, pages.pool.cached) == (0, 2)
    assert hits(pages, PROMPT) == 2 * BLOCK_SIZE


def test_a_prefix_is_shared_up_to_the_token_before_the_last() -> None:
    pages = PageTable(12)
    first = computed(pages, PROMPT)
    assert hits(pages, PROMPT) == 2 * BLOCK_SIZE  # at least one token stays to compute
    second = sequence([*PROMPT, 1])
    assert pages.admit(second) == 3 * BLOCK_SIZE == second.num_computed
    assert second.blocks == first.blocks
    assert second.published == first.published
    assert second.pending == 1
    pages.check([first, second])
    pages.release(first)
    pages.check([second])
    assert pages.pool.held == 3


def test_a_block_is_published_when_it_is_full_and_not_before() -> None:
    pages = PageTable(8)
    seq = sequence(PROMPT)
    pages.reserve(seq, 15)
    pages.commit(seq, range(15))
    assert (hits(pages, PROMPT), seq.published) == (0, [])
    pages.reserve(seq, 1)
    pages.commit(seq, range(1))
    assert (hits(pages, PROMPT), len(seq.published)) == (BLOCK_SIZE, 1)
    pages.reserve(seq, 31)  # reserved, not computed
    assert hits(pages, PROMPT) == BLOCK_SIZE
    pages.commit(seq, range(31))
    assert (hits(pages, PROMPT), len(seq.published)) == (2 * BLOCK_SIZE, 2)


def test_two_sequences_with_equal_blocks_publish_one_of_them() -> None:
    pages = PageTable(8)
    one, other = sequence(PROMPT, "one"), sequence(PROMPT, "other")
    for seq in (one, other):
        pages.reserve(seq, seq.pending)
    for seq in (one, other):
        pages.commit(seq, range(seq.pending))
    assert one.published == other.published
    assert not set(one.blocks) & set(other.blocks)
    pages.release(other)
    assert (pages.pool.cached, pages.pool.free) == (0, 5)  # nobody could find these
    pages.release(one)
    assert pages.pool.cached == 3


def test_commit_moves_what_is_off_the_line_and_gives_back_the_tail() -> None:
    pages = PageTable(6)
    seq = computed(pages, PROMPT[:30])
    seq.tokens = PROMPT[:31]  # one pending
    assert pages.spare_room(seq, 10) == 10
    assert len(seq.blocks) == 3
    blocks = list(seq.blocks)
    seq.tokens += [1, 2, 3]
    moves = pages.commit(seq, (0, 1, 4, 8))

    def slot(index: int) -> int:
        return blocks[index // BLOCK_SIZE] * BLOCK_SIZE + index % BLOCK_SIZE

    assert moves == [(slot(34), slot(32)), (slot(38), slot(33))]
    assert seq.num_computed == 34
    assert len(seq.blocks) == 3
    assert len(seq.published) == 2


def test_commit_of_the_root_alone_gives_back_all_guesses() -> None:
    pages = PageTable(6)
    seq = computed(pages, PROMPT[:31])
    seq.tokens = PROMPT[:32]
    assert pages.spare_room(seq, 40) == 40
    seq.tokens.append(1)
    assert pages.commit(seq, (0,)) == []
    assert (len(seq.blocks), pages.pool.free) == (2, 4)
    assert hits(pages, [*PROMPT[:32], 1]) == 32


def test_published_tokens_are_the_accepted_ones() -> None:
    """The block's last two slots are filled by an off-line path: it is found by the tokens of the path."""
    pages = PageTable(6)
    seq = computed(pages, PROMPT[:13])
    seq.tokens = PROMPT[:14]
    pages.spare_room(seq, 8)
    seq.tokens += [71, 72, 73]
    pages.commit(seq, (0, 3, 5))
    assert seq.num_computed == 16
    assert hits(pages, [*PROMPT[:14], 71, 72, 99]) == BLOCK_SIZE
    assert hits(pages, [*PROMPT[:14], 71, 73, 99]) == 0


@pytest.mark.parametrize(("length", "blocks", "published"), [(48, 3, 3), (47, 3, 2), (33, 3, 2), (32, 2, 2), (5, 1, 0)])
def test_truncate_makes_what_follows_unfindable(length: int, blocks: int, published: int) -> None:
    pages = PageTable(6)
    seq = computed(pages, PROMPT)
    pages.truncate(seq, length)
    assert seq.tokens == PROMPT[:length]
    assert seq.num_computed == length
    assert (len(seq.blocks), len(seq.published)) == (blocks, published)
    pages.check([seq])
    assert hits(pages, [*PROMPT, 1]) == published * BLOCK_SIZE
    pages.release(seq)
    assert pages.pool.cached == published
    assert hits(pages, [*PROMPT, 1]) == published * BLOCK_SIZE


def test_truncate_past_the_end_changes_nothing() -> None:
    pages = PageTable(6)
    seq = computed(pages, PROMPT)
    pages.truncate(seq, 100)
    assert (seq.tokens, seq.num_computed, len(seq.published)) == (PROMPT, 48, 3)


def test_truncate_leaves_computed_tokens_of_others_alone() -> None:
    pages = PageTable(8)
    one = computed(pages, PROMPT, "one")
    other = computed(pages, [*PROMPT, 1, 2], "other")
    pages.truncate(one, 20)
    pages.check([one, other])
    pages.release(one)
    assert other.num_computed == 50
    assert len(other.blocks) == 4
    pages.release(other)
    assert (pages.pool.free, pages.pool.cached) == (7, 1)
    pages.check([])


def test_release_leaves_the_tail_to_be_evicted_first() -> None:
    pages = PageTable(4)
    pages.release(computed(pages, PROMPT))
    assert (pages.pool.free, pages.pool.cached) == (1, 3)
    for size, left in ((BLOCK_SIZE, 3), (2 * BLOCK_SIZE, 2), (3 * BLOCK_SIZE, 1)):
        seq = sequence([1] * 60, "other")
        pages.reserve(seq, size)
        pages.release(seq)
        assert hits(pages, [*PROMPT, 1]) == left * BLOCK_SIZE


def test_a_released_sequence_starts_again_from_what_is_still_there() -> None:
    pages = PageTable(6)
    seq = computed(pages, PROMPT)
    seq.tokens += [1]
    pages.release(seq)
    assert (seq.num_computed, seq.blocks, seq.published) == (0, [], [])
    assert seq.tokens == [*PROMPT, 1]
    assert pages.admit(seq) == 48
    pages.check([seq])


def test_a_pinned_prefix_outlives_what_was_used_after_it() -> None:
    pages = PageTable(6)
    pages.release(computed(pages, PROMPT))
    pages.pin("me", PROMPT[: 2 * BLOCK_SIZE + 5])
    assert (pages.pool.pinned, pages.pool.cached) == (2, 3)
    for first in range(3):
        pages.release(computed(pages, [first] * (4 * BLOCK_SIZE)))
        pages.check([])
        assert hits(pages, PROMPT) == 2 * BLOCK_SIZE
    seq = sequence([9] * (5 * BLOCK_SIZE))
    assert pages.reserve(seq, 5 * BLOCK_SIZE)  # nobody waits for what is kept
    pages.check([seq])
    assert pages.pool.pinned == 0


def test_a_pin_moves_with_the_conversation_and_is_lifted() -> None:
    pages = PageTable(8)
    pages.pin("me", PROMPT)
    assert pages.pool.pinned == 0  # nothing of it is there
    pages.release(computed(pages, PROMPT))
    pages.pin("me", PROMPT)
    pages.release(computed(pages, [1] * 40))
    pages.pin("me", [1] * 40)
    assert pages.pool.pinned == 2
    pages.unpin("me")
    pages.unpin("nobody")
    assert (pages.pool.pinned, pages.pool.cached) == (0, 5)
    pages.check([])


def test_what_is_cut_off_is_pinned_no_more() -> None:
    pages = PageTable(8)
    seq = computed(pages, PROMPT)
    for owner in "ab":
        pages.pin(owner, PROMPT)
    pages.truncate(seq, 20)
    pages.check([seq])
    pages.release(seq)
    pages.check([])
    assert (pages.pool.pinned, pages.pool.cached, pages.pool.free) == (1, 1, 7)
    pages.forget_prefixes()
    pages.check([])
    assert (pages.pool.pinned, pages.pool.free) == (0, 8)


def test_check_finds_a_pinned_block_that_cannot_be_found() -> None:
    pages = PageTable(6)
    seq = computed(pages, PROMPT)
    pages.pin("me", PROMPT)
    pages._cache.forget(seq.blocks[1])
    with pytest.raises(AssertionError, match="cannot be found"):
        pages.check([seq])


def test_check_finds_a_sequence_without_slots_and_a_block_published_too_early() -> None:
    pages = PageTable(6)
    seq = computed(pages, PROMPT)
    seq.num_computed = 49
    with pytest.raises(AssertionError, match="without slots"):
        pages.check([seq])
    seq.num_computed = 47
    with pytest.raises(AssertionError, match="published before"):
        pages.check([seq])
    with pytest.raises(AssertionError, match="references differ"):
        pages.check([])
