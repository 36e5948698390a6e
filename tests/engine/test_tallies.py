from __future__ import annotations

from paceline.engine.tallies import GuessTally, SizeTally


def test_guesses_are_counted_by_depth_and_the_deepest_share_a_place() -> None:
    tally = GuessTally()
    tally.add([(1, True), (1, False), (2, True), (16, True), (17, True), (17, False), (63, False)])
    drafted, accepted, steps = tally.counts()
    assert (drafted, accepted) == ((2, 1, *[0] * 13, 4), (1, 1, *[0] * 13, 2))
    assert steps == (1, 1, *[0] * 13, 3)  # at the last place, depths 16, 17 and 63: a share of them is never above one


def test_a_step_counts_once_at_a_depth_however_many_guesses_stand_there() -> None:
    tally = GuessTally()
    for _ in range(2):
        tally.add([(1, False), (1, True), (1, False), (2, True)])
    tally.add([])
    assert [counts[:2] for counts in tally.counts()] == [(6, 2), (2, 2), (2, 2)]


def test_sizes_are_counted_up_to_powers_of_two_and_the_largest_share_a_place() -> None:
    tally = SizeTally()
    sizes = (1, 2, 3, 4, 5, 8, 9, 4096, 4097, 100_000)
    for size in sizes:
        tally.add(size)
    counts, total = tally.counts()
    assert counts[:5] == (1, 1, 2, 2, 1)
    assert counts[12:] == (1, 2)
    assert (sum(counts), total) == (len(sizes), sum(sizes))
