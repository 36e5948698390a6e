"""Counters of one engine: written by its thread, read by anyone as a frozen snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import get_args

from paceline.spec.merge import Vote
from paceline.spec.planner import Reason

from .scheduler import Scheduler
from .sequence import Sequence
from .tallies import GuessCounts, GuessTally, SizeCounts, SizeTally

_STUCK_AFTER_S = 60.0  # far above any step; a healthy engine with work steps many times in this time


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot."""

    running: int
    waiting: int
    blocks_total: int
    blocks_free: int
    blocks_cached: int
    blocks_pinned: int  # of the cached ones
    blocks_held: int
    steps: int
    last_step_age_s: float  # since the last step ended or the last command came
    stuck: bool  # there is work and no step has ended for a minute, or the engine thread is gone
    generated_tokens: int
    prompt_tokens: int
    prefix_hit_tokens: int
    preemptions: int
    guesses: GuessCounts
    guesses_by_drafter: tuple[tuple[str, GuessCounts], ...]  # one that several made counts for each of them
    trees_by_reason: tuple[tuple[Reason, int], ...]  # why they had the size they had; those that gave tokens
    step_ms: float  # wall time of all steps together
    forward_ms: float  # of which inside the model's pass
    step_sequences: SizeCounts  # how many had a part in a step
    step_rows: SizeCounts  # how many rows a step computed: those of prompts, roots and guesses


@dataclass(slots=True)
class Telemetry:
    steps: int = 0
    generated_tokens: int = 0
    prompt_tokens: int = 0
    prefix_hit_tokens: int = 0
    step_ms: float = 0.0
    forward_ms: float = 0.0
    last_progress: float = field(default_factory=time.monotonic)
    guesses: GuessTally = field(default_factory=GuessTally)
    by_drafter: dict[str, GuessTally] = field(default_factory=dict)
    sequences: SizeTally = field(default_factory=SizeTally)
    rows: SizeTally = field(default_factory=SizeTally)
    reasons: dict[Reason, int] = field(default_factory=lambda: dict.fromkeys(get_args(Reason), 0))

    def count_reason(self, reason: Reason) -> None:
        """A tree gave tokens; `reason` says why it had as many nodes as it had."""
        self.reasons[reason] += 1

    def count_prompt(self, seq: Sequence) -> None:
        """All of the prompt that is to be computed is there."""
        self.prompt_tokens += seq.prompt_length
        self.prefix_hit_tokens += seq.cached_tokens or 0

    def count_guesses(self, guesses: Iterable[tuple[int, Iterable[Vote], bool]]) -> None:
        """A step verified guesses of one sequence. Of each: depth, 1 for one right below the pending token, the votes
        of those who made it, and whether it was right."""
        told: list[tuple[int, bool]] = []
        by_drafter: dict[str, list[tuple[int, bool]]] = {}
        for depth, votes, accepted in guesses:
            told.append((depth, accepted))
            for vote in votes:
                by_drafter.setdefault(vote.source, []).append((depth, accepted))
        self.guesses.add(told)
        for name, mine in by_drafter.items():
            tally = self.by_drafter.get(name)
            if tally is None:
                tally = self.by_drafter[name] = GuessTally()
            tally.add(mine)

    def count_step(self, sequences: int, rows: int) -> None:
        """A step ended that so many had a part in."""
        self.steps += 1
        self.sequences.add(sequences)
        self.rows.add(rows)
        self.progress()

    def progress(self) -> None:
        """A step ended, or there is nothing to do."""
        self.last_progress = time.monotonic()

    def is_stuck(self, has_work: bool) -> bool:
        return has_work and time.monotonic() - self.last_progress > _STUCK_AFTER_S

    def snapshot(self, scheduler: Scheduler) -> EngineStats:
        """What is counted here, and where sequences and blocks stand."""
        pool = scheduler.pages.pool
        return EngineStats(
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            blocks_total=pool.total,
            blocks_free=pool.free,
            blocks_cached=pool.cached,
            blocks_pinned=pool.pinned,
            blocks_held=pool.held,
            steps=self.steps,
            last_step_age_s=time.monotonic() - self.last_progress,
            stuck=self.is_stuck(scheduler.has_work),
            generated_tokens=self.generated_tokens,
            prompt_tokens=self.prompt_tokens,
            prefix_hit_tokens=self.prefix_hit_tokens,
            preemptions=scheduler.preemptions,
            guesses=self.guesses.counts(),
            guesses_by_drafter=tuple([(name, tally.counts()) for name, tally in tuple(self.by_drafter.items())]),
            trees_by_reason=tuple(self.reasons.items()),
            step_ms=self.step_ms,
            forward_ms=self.forward_ms,
            step_sequences=self.sequences.counts(),
            step_rows=self.rows.counts(),
        )
