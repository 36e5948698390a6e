from __future__ import annotations

from paceline.server.committer import Piece
from paceline.server.step_counts import StepCounts, add_counts


def test_counts_wait_for_the_next_delta_and_start_again() -> None:
    counts = StepCounts()
    assert not counts.pending
    counts.add(Piece(drafted=3, accepted=2, tokens=(1, 2, 3), source="suffix", reason="best"))
    counts.add(Piece(drafted=1, accepted=0, tokens=(4,), reason="budget"))
    counts.add(Piece())  # the end, without a step of its own
    assert counts.pending
    assert counts.take() == {"drafted": 4, "accepted": 2, "emitted": 4, "source": "", "reason": "budget"}
    assert not counts.pending
    assert counts.take() == {"drafted": 0, "accepted": 0, "emitted": 0, "source": "", "reason": "budget"}


def test_merged_deltas_sum_their_counts() -> None:
    first = {"drafted": 1, "accepted": 0, "emitted": 1, "source": "", "reason": "best"}
    second = {"drafted": 2, "accepted": 2, "emitted": 3, "source": "suffix", "reason": "budget"}
    assert add_counts(first, second) == second | {"drafted": 3, "emitted": 4}
