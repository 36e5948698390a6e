"""Who runs in the next step and with how many tokens. No phases: `num_computed` catches up with the known tokens."""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from paceline.spec.cost import Work

from .errors import OverloadedError, RequestError
from .page_table import PageTable
from .request import PRIORITY_ORDER, Request
from .sequence import Sequence


@dataclass(slots=True)
class Row:
    """One sequence's share of a step: `known` tokens to compute and slots for up to `guesses` more.

    When `samples` the known tokens are the last ones the sequence has, so the next token can be chosen. `start` is the
    position of the first of them.
    """

    seq: Sequence
    known: int
    samples: bool
    guesses: int = 0
    start: int = field(init=False)

    def __post_init__(self) -> None:
        self.start = self.seq.num_computed


@dataclass(slots=True)
class Plan:
    """What the next step computes. Decoding rows come first. warm: sequences that end without a row, since what they
    would have computed is in the cache."""

    rows: list[Row] = field(default_factory=list)
    warm: list[Sequence] = field(default_factory=list)

    @property
    def work(self) -> Work:
        """That of the known tokens."""
        work = Work(0)
        for row in self.rows:
            work = work.beside(row.start, row.known)
        return work


def age(seq: Sequence) -> tuple[int, int]:
    """Order of service: priority first, then arrival."""
    return PRIORITY_ORDER[seq.request.priority], seq.arrival


class Scheduler:
    """Admits, plans, preempts and retires sequences.

    max_batch: sequences that run at once. step_budget: rows of one step. prefill_limit(streams, planned, context,
    most): how many rows of a prompt, behind `context` computed ones, may join a step that computes `planned`, so that
    running streams, which compute `streams` of it, do not stall. guess_limit(request): most guesses per step it allows.
    """

    def __init__(
        self,
        pages: PageTable,
        *,
        max_batch: int,
        step_budget: int,
        queue_limit: int,
        context_length: int,
        prefill_limit: Callable[[Work, Work, int, int], int],
        guess_limit: Callable[[Request], int],
    ) -> None:
        self.pages = pages
        self.running: list[Sequence] = []
        self.waiting: list[Sequence] = []
        self.preemptions = 0
        self._max_batch = max_batch
        self._step_budget = step_budget
        self._queue_limit = queue_limit
        self._context_length = context_length
        self._prefill_limit = prefill_limit
        self.guess_limit = guess_limit
        self._arrivals = 0

    def __iter__(self) -> Iterator[Sequence]:
        yield from self.running
        yield from self.waiting

    @property
    def has_work(self) -> bool:
        return bool(self.running or self.waiting)

    def validate(self, request: Request, queued: int = 0) -> None:
        """Raises RequestError when the prompt leaves no room for a token, OverloadedError when the queue is full.

        queued: requests that wait elsewhere to be submitted.
        """
        if len(request.prompt) >= self._context_length:
            raise RequestError(
                f"This model's maximum context length is {self._context_length} tokens, but the prompt has "
                f"{len(request.prompt)}; shorten it so that at least one token can be generated.",
                param="messages",
                code="context_length_exceeded",
            )
        places = self._max_batch - len(self.running)  # whoever takes one of these does not wait
        if len(self.waiting) + queued >= self._queue_limit + places:
            raise OverloadedError(f"The queue is full ({self._queue_limit} requests are waiting); try again shortly.")

    def submit(self, request: Request) -> Sequence:
        """Put a valid request in the queue."""
        seq = Sequence(request, self._arrivals)
        self._arrivals += 1
        insort(self.waiting, seq, key=age)
        return seq

    def schedule(self) -> Plan:
        """Reserve the slots of one step: decoding sequences first, then prefill chunks, then guesses."""
        plan = Plan()
        budget = self._step_budget
        for seq in sorted((seq for seq in self.running if seq.is_decoding), key=age):
            if budget > 0 and seq in self.running and self._make_room(plan, seq, 1):
                plan.rows.append(Row(seq, 1, samples=True))
                budget -= 1
        budget -= self._plan_prefill(plan, budget)
        self._plan_guesses(plan, budget)
        return plan

    def _plan_prefill(self, plan: Plan, budget: int) -> int:
        """Chunks of running prefills, then of newly admitted sequences; returns the rows used."""
        prefilling = sorted((seq for seq in self.running if not seq.is_decoding), key=age)
        if not prefilling and not self.waiting:
            return 0
        streams = plan.work
        left, used = budget, 0
        for seq in prefilling:
            if left > 0 and seq in self.running:
                left = self._bearable(streams, plan, seq, left)
                used += (chunk := self._plan_chunk(plan, seq, left))
                left -= chunk
        while self.waiting and left > 0 and len(self.running) < self._max_batch:
            seq = self.waiting[0]
            hits = self.pages.admit(seq)
            warm = seq.is_warm_after(0)
            if not warm:
                left = self._bearable(streams, plan, seq, left)
                # Beside others only a sequence that fits whole is let in: else it would be preempted soon.
                if left == 0 or (self.running and self.pages.room(seq) < seq.pending + 1):
                    self.pages.release(seq)
                    break
            if seq.cached_tokens is None:
                seq.cached_tokens = min(hits, len(seq.request.prompt))
                seq.queued_ms = (time.monotonic() - seq.submitted) * 1e3
            self.waiting.pop(0)
            self.running.append(seq)
            if warm:
                plan.warm.append(seq)
                continue
            used += (chunk := self._plan_chunk(plan, seq, left))
            left -= chunk
        return used

    def _bearable(self, streams: Work, plan: Plan, seq: Sequence, most: int) -> int:
        """Rows of this prompt that may join the step; the first prompt always makes progress."""
        if not streams.rows:
            return most
        planned = plan.work
        first = planned.rows <= streams.rows
        return max(min(most, self._prefill_limit(streams, planned, seq.num_computed, most)), int(first))

    def _plan_chunk(self, plan: Plan, seq: Sequence, most: int) -> int:
        # Less than a whole chunk may fit; one token must, if need be at the cost of younger sequences.
        if not self._make_room(plan, seq, 1):
            return 0
        chunk = min(seq.pending, most, self.pages.room(seq))
        self.pages.reserve(seq, chunk)
        plan.rows.append(Row(seq, chunk, samples=seq.samples_after(chunk)))
        return chunk

    def _make_room(self, plan: Plan, seq: Sequence, nodes: int) -> bool:
        """Reserve slots, preempting whoever is served after `seq`; False when nobody is left to preempt."""
        while not self.pages.reserve(seq, nodes):
            victim = max((other for other in self.running if age(other) > age(seq)), key=age, default=None)
            if victim is None:
                return False
            self._preempt(plan, victim)
        return True

    def _preempt(self, plan: Plan, seq: Sequence) -> None:
        """Back to the queue, blocks given back; its tokens stay and are computed again later."""
        plan.rows = [row for row in plan.rows if row.seq is not seq]
        self.running.remove(seq)
        self.pages.release(seq)
        insort(self.waiting, seq, key=age)
        self.preemptions += 1

    def _plan_guesses(self, plan: Plan, budget: int) -> None:
        """Slots for guesses, from what nobody else needs: a guess never evicts or preempts. Rows share them evenly,
        save that background sequences get what the others leave, and nothing while anyone waits.
        """
        guessing = [row for row in plan.rows if row.seq.is_decoding]
        background = [row for row in guessing if row.seq.request.priority == "background"]
        budget -= self._share([row for row in guessing if row.seq.request.priority != "background"], budget)
        if not self.waiting:
            self._share(background, budget)

    def _share(self, rows: list[Row], budget: int) -> int:
        """Returns the slots used."""
        left = budget
        for waiting, row in zip(range(len(rows), 0, -1), rows, strict=True):
            seq = row.seq
            # The last token of a reply needs no guess, and none may stand past the context.
            most = min(
                seq.request.sampling.max_tokens - seq.output_count - 1,
                self._context_length - len(seq.tokens) - 1,
                self.guess_limit(seq.request),
                left // waiting,
            )
            if most > 0:
                row.guesses = self.pages.spare_room(seq, row.known + most) - row.known
                left -= row.guesses
        return budget - left

    def retire(self, seq: Sequence) -> None:
        """The sequence has ended, however it did: its blocks are given back now, and kept for whom it says."""
        if seq in self.running:
            self.running.remove(seq)
        else:
            self.waiting.remove(seq)
        self.pages.release(seq)
        if seq.request.pin:
            self.pages.pin(seq.request.pin, seq.tokens)

    def find(self, request_id: str) -> Sequence | None:
        return next((seq for seq in self if seq.id == request_id), None)
