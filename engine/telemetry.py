"""Counters of one engine: written by its thread, read by anyone as a frozen snapshot."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import get_args

from paceline.spec.planner import Reason

from .scheduler import Scheduler
from .sequence import Sequence

_STUCK_AFTER_S = 60.0  # far above any step; a healthy engine with work steps many times in this time
_DEEPEST = 16  # guesses deeper than this are counted with the last


@dataclass(frozen=True, slots=True)
class EngineStats:
    """A snapshot. Depth 1, the first entry of the by-depth tuples, is a guess right below the pending token."""

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
    drafted_by_depth: tuple[int, ...]
    accepted_by_depth: tuple[int, ...]
    trees_by_reason: tuple[tuple[Reason, int], ...]  # why they had the size they had; those that gave tokens
    step_ms: float  # wall time of all steps together
    forward_ms: float  # of which inside the model's pass


@dataclass(slots=True)
class Telemetry:
    steps: int = 0
    generated_tokens: int = 0
    prompt_tokens: int = 0
    prefix_hit_tokens: int = 0
    step_ms: float = 0.0
    forward_ms: float = 0.0
    last_progress: float = field(default_factory=time.monotonic)
    drafted: list[int] = field(default_factory=lambda: [0] * _DEEPEST)
    accepted: list[int] = field(default_factory=lambda: [0] * _DEEPEST)

    reasons: dict[Reason, int] = field(default_factory=lambda: dict.fromkeys(get_args(Reason), 0))

    def count_reason(self, reason: Reason) -> None:
        """A tree gave tokens; `reason` says why it had as many nodes as it had."""
        self.reasons[reason] += 1

    def count_prompt(self, seq: Sequence) -> None:
        """All of the prompt that is to be computed is there."""
        self.prompt_tokens += seq.prompt_length
        self.prefix_hit_tokens += seq.cached_tokens or 0

    def count_guess(self, depth: int, accepted: bool) -> None:
        """depth: 1 for a guess right below the pending token."""
        at = min(depth, _DEEPEST) - 1
        self.drafted[at] += 1
        self.accepted[at] += accepted

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
            drafted_by_depth=tuple(self.drafted),
            accepted_by_depth=tuple(self.accepted),
            trees_by_reason=tuple(self.reasons.items()),
            step_ms=self.step_ms,
            forward_ms=self.forward_ms,
        )
