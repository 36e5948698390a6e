from __future__ import annotations

from paceline.server.committer import Piece
from paceline.server.step_counts import StepCounts, add_counts


def test_counts_wait_for_the_next_delta_and_start_again() -> None:
    counts = StepCounts()
    assert not counts.pending
    counts.add(Piece(drafted=3, accepted=2, tokens=(1, 2, 3)))
    counts.add(Piece(drafted=1, accepted=0, tokens=(4,)))
    assert counts.pending
    assert counts.take() == {"drafted": 4, "accepted": 2, "emitted": 4}
    assert not counts.pending
    assert counts.take() == {"drafted": 0, "accepted": 0, "emitted": 0}


def test_merged_deltas_sum_their_counts() -> None:
    first = {"drafted": 1, "accepted": 0, "emitted": 1}
    assert add_counts(first, {"drafted": 2, "accepted": 2, "emitted": 3}) == {"drafted": 3, "accepted": 2, "emitted": 4}
