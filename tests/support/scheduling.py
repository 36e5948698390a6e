"""A scheduler, and a model that is played by a counter: it computes what was planned and answers 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Sequence as Seq

from fakes import make_request

from paceline.engine.page_table import PageTable
from paceline.engine.request import Priority, Request
from paceline.engine.scheduler import Plan, Scheduler
from paceline.engine.sequence import Sequence
from paceline.spec.cost import Work


def make_scheduler(
    *,
    blocks: int = 200,
    spare: int = 0,
    max_batch: int = 8,
    step_budget: int = 64,
    queue_limit: int = 100,
    context_length: int = 3000,
    limit: Callable[[Mapping[int, Work], int, Work, int, int], int] = lambda streams, rank, planned, context, most: (
        most
    ),
    guesses: Callable[[Request], int] = lambda request: 0,
) -> Scheduler:
    return Scheduler(
        PageTable(blocks + spare, spare),
        max_batch=max_batch,
        step_budget=step_budget,
        queue_limit=queue_limit,
        context_length=context_length,
        row_limit=limit,
        guess_limit=guesses,
    )


def add(
    scheduler: Scheduler, name: str, length: int, *, priority: Priority = "normal", max_tokens: int = 500
) -> Sequence:
    """A request whose prompt no other one shares."""
    base = make_request(name, [sum(name.encode()) * 5000 + i for i in range(length)], max_tokens=max_tokens)
    request = Request(id=base.id, prompt=base.prompt, sampling=base.sampling, priority=priority)
    scheduler.validate(request)
    return scheduler.submit(request)


def step(scheduler: Scheduler) -> Plan:
    """Schedule, and commit what a model that always answers 1 and accepts no guess would have done."""
    plan = scheduler.schedule()
    for row in plan.rows:
        if row.samples:
            row.seq.tokens.append(1)
        scheduler.pages.commit(row.seq, range(row.known))
        if row.seq.output_count >= row.seq.request.sampling.max_tokens:
            scheduler.retire(row.seq)
    scheduler.pages.check(scheduler)
    return plan


def shares(plan: Plan) -> list[tuple[str, int]]:
    return [(row.seq.id, row.known) for row in plan.rows]


def ids(sequences: Seq[Sequence]) -> list[str]:
    return [seq.id for seq in sequences]
