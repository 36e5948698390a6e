"""Counters, and when a thread counts as stuck."""

from __future__ import annotations

import time

import pytest
from fakes import make_request
from scheduling import add, make_scheduler, step

from paceline.engine.sequence import Sequence
from paceline.engine.telemetry import Telemetry
from paceline.spec.merge import Vote


def test_a_guess_counts_for_each_of_its_drafters() -> None:
    telemetry = Telemetry()
    heads, suffix = Vote("heads", 0, 0.5), Vote("suffix", 1, 0.5)
    telemetry.count_guesses([(1, (heads, suffix), True), (1, (heads,), False), (2, (suffix,), True)])
    stats = telemetry.snapshot(make_scheduler(blocks=9))
    assert [counts[:3] for counts in stats.guesses] == [(2, 1, 0), (1, 1, 0), (1, 1, 0)]
    told = {name: [some[:2] for some in counts] for name, counts in stats.guesses_by_drafter}
    assert told == {"heads": [(2, 0), (1, 0), (1, 0)], "suffix": [(1, 1), (1, 1), (1, 1)]}


def test_steps_are_counted_with_their_sizes() -> None:
    telemetry = Telemetry()
    telemetry.count_step(1, 5)
    telemetry.count_step(3, 64)
    stats = telemetry.snapshot(make_scheduler(blocks=9))
    assert (stats.steps, stats.step_sequences.total, stats.step_rows.total) == (2, 4, 69)
    assert stats.step_sequences.counts[:3] == (1, 0, 1)


def test_trees_are_counted_by_why_they_had_their_size() -> None:
    telemetry = Telemetry()
    for reason in ("best", "no guesses", "best"):
        telemetry.count_reason(reason)  # type: ignore[arg-type]
    assert {reason: count for reason, count in telemetry.reasons.items() if count} == {"best": 2, "no guesses": 1}
    assert "budget" in telemetry.reasons  # all are there from the start, as a scrape wants them


def test_two_engines_share_no_counters() -> None:
    one, other = Telemetry(), Telemetry()
    one.count_guesses([(1, (Vote("suffix", 0, 0.5),), True)])
    one.count_step(1, 1)
    scheduler = make_scheduler(blocks=9)
    assert other.snapshot(scheduler).guesses == Telemetry().snapshot(scheduler).guesses
    assert other.snapshot(scheduler).step_rows.total == 0


def test_stuck_is_work_without_progress_for_a_long_time(monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = Telemetry()
    assert not telemetry.is_stuck(has_work=True)
    later = time.monotonic() + 3600
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert telemetry.is_stuck(has_work=True)
    assert not telemetry.is_stuck(has_work=False)
    telemetry.progress()
    assert not telemetry.is_stuck(has_work=True)


def test_a_snapshot_says_where_sequences_and_blocks_stand() -> None:
    scheduler, telemetry = make_scheduler(blocks=9, max_batch=1), Telemetry()
    for name in "ab":
        add(scheduler, name, 20)
    step(scheduler)
    seq = Sequence(make_request("r", [1] * 7), 0)
    seq.cached_tokens = 3
    seq.tokens.append(1)  # a token of the reply is none of the prompt
    telemetry.count_prompt(seq)
    stats = telemetry.snapshot(scheduler)
    assert (stats.running, stats.waiting) == (1, 1)
    assert (stats.blocks_total, stats.blocks_free, stats.blocks_cached, stats.blocks_held) == (9, 7, 0, 2)
    assert stats.blocks_pinned == 0
    assert (stats.prompt_tokens, stats.prefix_hit_tokens, stats.stuck) == (7, 3, False)
