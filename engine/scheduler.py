"""Who runs in the next step and with how many tokens. No phases: `num_computed` catches up with the known tokens."""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from itertools import accumulate, groupby

from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cost import Work

from .errors import OverloadedError, RequestError
from .page_table import PageTable
from .request import Request
from .sequence import Sequence

_TURNS = 4  # steps within which every decoding sequence has a row, however low its class


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
    """What the next step computes. Decoding rows come first. streams: for each class that has some of these, what its
    own and those of classes above compute. warm: sequences that end without a row, since what they would have computed
    is in the cache.
    """

    rows: list[Row] = field(default_factory=list)
    streams: dict[int, Work] = field(default_factory=dict)
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
    return seq.rank, seq.arrival


class Scheduler:
    """Admits, plans, preempts and retires sequences.

    max_batch: sequences that run at once. step_budget: rows of one step. row_limit(streams, rank, planned, context,
    most): how many rows of a sequence of class `rank`, up to `most` behind `context` computed ones, may join a step
    that computes `planned`, so that no class stalls of which `streams`, as a plan has them, are given.
    guess_limit(request): most guesses per step it allows.
    """

    def __init__(
        self,
        pages: PageTable,
        *,
        max_batch: int,
        step_budget: int,
        queue_limit: int,
        context_length: int,
        row_limit: Callable[[Mapping[int, Work], int, Work, int, int], int],
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
        self._row_limit = row_limit
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
        self._plan_decoding(plan)
        self._plan_prefill(plan)
        self._plan_guesses(plan)
        return plan

    def _plan_decoding(self, plan: Plan) -> None:
        """A row for each; those of lower classes take turns where all of them would hold up the higher ones."""
        decoding = sorted((seq for seq in self.running if seq.is_decoding), key=age)
        for rank, alike in groupby(decoding, key=lambda seq: seq.rank):
            longest_waiting_first = sorted(alike, key=lambda seq: -seq.skipped)
            borne = self._borne(plan, rank, longest_waiting_first)
            for place, seq in enumerate(longest_waiting_first):
                if place >= borne:
                    seq.skipped += 1
                elif len(plan.rows) < self._step_budget and seq in self.running and self._make_room(plan, seq, 1):
                    plan.rows.append(Row(seq, 1, samples=True))
                    seq.skipped = 0
            if plan.rows and plan.rows[-1].seq.rank == rank:
                plan.streams[rank] = plan.work

    def _borne(self, plan: Plan, rank: int, sequences: Seq[Sequence]) -> int:
        """How many of a class's decoding sequences, from the first on, those above bear in this step.

        In any case so many that none waits longer than its turn, as long as those that have waited longest come first.
        """
        if not plan.streams:
            return len(sequences)
        contexts = [seq.num_computed for seq in sequences]
        works = list(accumulate(contexts, lambda work, context: work.beside(context, 1), initial=plan.work))

        def is_too_much(place: int) -> bool:
            return not self._row_limit(plan.streams, rank, works[place], contexts[place], 1)

        turns = -(-len(sequences) // _TURNS)
        return max(bisect_left(range(len(sequences)), True, key=is_too_much), turns)

    def _plan_prefill(self, plan: Plan) -> None:
        """Class by class, chunks of running prefills, then of newly admitted sequences."""
        prefilling = deque(sorted((seq for seq in self.running if not seq.is_decoding), key=age))
        left, admits = self._step_budget - len(plan.rows), True
        while left > 0 and (prefilling or (admits and self.waiting)):
            if admits and self.waiting and not (prefilling and prefilling[0].rank <= self.waiting[0].rank):
                seq = self.waiting[0]
                most = self._admit(plan, seq, left)
                admits = most > 0  # nobody overtakes one that cannot be let in
            else:
                seq = prefilling.popleft()
                most = self._bearable(plan, seq, left)
            if seq in self.running and seq.pending:
                left = most - self._plan_chunk(plan, seq, most)

    def _admit(self, plan: Plan, seq: Sequence, most: int) -> int:
        """Let the first of those that wait run; returns the rows it may have, 0 when it has to wait on."""
        if not seq.request.prefill_only and not self._has_place(plan, seq):
            return 0
        hits = self.pages.admit(seq)
        if seq.is_warm_after(0):  # it needs neither a place nor rows
            plan.warm.append(seq)
        else:
            most = self._bearable(plan, seq, most) if self._has_place(plan, seq) else 0
            # Beside others only a sequence that fits whole is let in: else it would be preempted soon.
            while most and self._is_too_large(seq) and self._fits_beside_higher(seq) and self._give_way(plan, seq):
                pass
            if most == 0 or self._is_too_large(seq):
                self.pages.release(seq)
                return 0
        if seq.cached_tokens is None:
            seq.cached_tokens = min(hits, seq.prompt_length)
            seq.queued_ms = (time.monotonic() - seq.submitted) * 1e3
        self.waiting.remove(seq)
        self.running.append(seq)
        return most

    def _is_too_large(self, seq: Sequence) -> bool:
        return bool(self.running) and self.pages.room(seq) < seq.pending + 1

    def _fits_beside_higher(self, seq: Sequence) -> bool:
        """False where those of lower classes would give way in vain; a block that several hold counts for each."""
        lower = [other for other in self.running if other.rank > seq.rank]
        freed = sum(len(other.blocks) for other in lower) * BLOCK_SIZE
        return len(lower) == len(self.running) or self.pages.room(seq) + freed > seq.pending

    def _has_place(self, plan: Plan, seq: Sequence) -> bool:
        while len(self.running) >= self._max_batch and self._give_way(plan, seq):
            pass
        return len(self.running) < self._max_batch

    def _give_way(self, plan: Plan, seq: Sequence) -> bool:
        """Preempt the last of those of lower classes; False when there is none."""
        victim = max(self.running, key=age, default=seq)
        if victim.rank <= seq.rank:
            return False
        self._preempt(plan, victim)
        return True

    def _bearable(self, plan: Plan, seq: Sequence, most: int) -> int:
        """Rows of this prompt that may join the step; the first prompt always makes progress."""
        if not plan.streams:
            return most
        first = all(row.seq.is_decoding for row in plan.rows)
        limit = self._row_limit(plan.streams, seq.rank, plan.work, seq.num_computed, most)
        return max(min(most, limit), int(first))

    def _plan_chunk(self, plan: Plan, seq: Sequence, most: int) -> int:
        # Less than a whole chunk may fit; one token must, if need be at the cost of younger sequences.
        if most == 0 or not self._make_room(plan, seq, 1):
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

    def _plan_guesses(self, plan: Plan) -> None:
        """Slots for guesses, from what nobody else needs: a guess never evicts or preempts. Rows of a class share them
        evenly; a lower one gets what those above leave.
        """
        left = self._step_budget - plan.work.rows
        for rank in plan.streams:
            rows = [row for row in plan.rows if row.seq.is_decoding and row.seq.rank == rank]
            left -= self._share(rows, left)

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
