"""Classes of service: whose rows and chunks a step holds when it has to be short for someone."""

from __future__ import annotations

from functools import partial

import pytest
from fakes import make_request
from scheduling import add, ids, make_scheduler, shares, step

from paceline.engine.build import row_limit
from paceline.engine.request import Priority, Request
from paceline.engine.scheduler import Plan, Scheduler
from paceline.spec.cost import StepCost, Work

# Milliseconds by rows: nearly flat to 4 rows, then each costs.
CPU = {1: 7.5, 2: 7.6, 4: 8.0, 8: 12.0, 64: 68.0}
STEEP = {1: 10.0, 100: 1000.0}


def scheduler_of(points: dict[int, float], streams: dict[Priority, int], **options: int) -> Scheduler:
    """So many streams of each class, all of which decode."""
    scheduler = make_scheduler(
        blocks=900, max_batch=40, step_budget=512, limit=partial(row_limit, StepCost(points)), **options
    )
    for priority, count in streams.items():
        for i in range(count):
            add(scheduler, f"{priority} {i}", 5, priority=priority)
    while not all(seq.is_decoding for seq in scheduler) or scheduler.waiting:
        step(scheduler)
    for seq in scheduler:
        seq.skipped = 0
    return scheduler


def ms(points: dict[int, float], rows: int) -> float:
    return StepCost(points).ms(Work(rows))


def names(plan: Plan) -> set[str]:
    return {row.seq.id for row in plan.rows}


def test_lower_rows_take_turns_where_they_would_hold_up_higher_ones() -> None:
    """Two interactive rows take 7.6 ms: background ones may make it 9.5, which five rows do not exceed."""
    scheduler = scheduler_of(CPU, {"interactive": 2, "background": 6})
    ran = dict.fromkeys(ids(scheduler.running), 0)
    for _ in range(20):
        plan = step(scheduler)
        assert {"interactive 0", "interactive 1"} <= names(plan)
        assert ms(CPU, len(plan.rows)) <= 1.25 * ms(CPU, 2)
        assert len(plan.rows) == 5
        for name in names(plan):
            ran[name] += 1
    assert [count for name, count in ran.items() if name.startswith("background")] == [10] * 6


@pytest.mark.parametrize("lower", [1, 3, 4, 5, 9, 13])
def test_however_dear_rows_are_each_runs_within_four_steps(lower: int) -> None:
    scheduler = scheduler_of(STEEP, {"interactive": 1, "normal": lower, "background": lower})
    last = dict.fromkeys(ids(scheduler.running), 0)
    for now in range(1, 30):
        plan = step(scheduler)
        for name in names(plan):
            last[name] = now
        assert all(now - at < 4 for at in last.values())
        assert len(plan.rows) == 1 + 2 * -(-lower // 4)  # and no more than that


def test_newcomers_do_not_push_in() -> None:
    scheduler = scheduler_of(STEEP, {"interactive": 1, "background": 4})
    for i in range(12):
        add(scheduler, f"late {i}", 1, priority="background")
        plan = step(scheduler)
        waited = {seq.id: seq.skipped for seq in scheduler.running}
        assert max(waited.values()) < 4
        assert "interactive 0" in names(plan)


def test_where_rows_are_cheap_everyone_runs() -> None:
    scheduler = scheduler_of(CPU, {"interactive": 1, "normal": 2, "background": 1})
    assert all(len(step(scheduler).rows) == 4 for _ in range(8))
    flat = scheduler_of({1: 5.0, 1000: 5.0}, {"interactive": 1, "normal": 15, "background": 15})
    assert all(len(step(flat).rows) == 31 for _ in range(4))


@pytest.mark.parametrize("priority", ["interactive", "normal", "background"])
def test_one_class_alone_is_never_made_to_wait(priority: Priority) -> None:
    scheduler = scheduler_of(STEEP, {priority: 9})
    assert all(len(step(scheduler).rows) == 9 for _ in range(8))
    assert all(seq.skipped == 0 for seq in scheduler)


def test_when_the_higher_class_has_gone_nobody_waits() -> None:
    scheduler = scheduler_of(STEEP, {"interactive": 1, "background": 8})
    assert len(step(scheduler).rows) == 3
    scheduler.retire(scheduler.running[0])
    assert len(step(scheduler).rows) == 8
    assert all(seq.skipped == 0 for seq in scheduler)


@pytest.mark.parametrize(
    ("streams", "prompt", "times"),
    [
        ("interactive", "interactive", 2.0),
        ("interactive", "normal", 1.5),
        ("interactive", "background", 1.25),
        ("normal", "background", 1.5),
        ("normal", "normal", 2.0),
        ("normal", "interactive", 3.0),
        ("background", "interactive", 5.0),
    ],
)
def test_a_chunk_is_the_smaller_the_more_its_class_is_below_the_streams(
    streams: Priority, prompt: Priority, times: float
) -> None:
    line = {1: 10.1, 1001: 110.1}  # a row is a tenth
    scheduler = scheduler_of(line, {streams: 1})
    add(scheduler, "prompt", 1400, priority=prompt)
    sizes = [next(row.known for row in step(scheduler).rows if row.seq.id == "prompt") for _ in range(3)]
    assert sizes == [int((times - 1) * 101)] * 3


def test_a_higher_prompt_goes_first_and_a_lower_one_gets_what_is_left_within_its_bound() -> None:
    line = {1: 10.1, 1001: 110.1}
    scheduler = scheduler_of(line, {"interactive": 1})
    add(scheduler, "low", 900, priority="background")
    assert shares(step(scheduler)) == [("interactive 0", 1), ("low", 25)]
    add(scheduler, "high", 110, priority="interactive")
    assert shares(step(scheduler)) == [("interactive 0", 1), ("high", 101)]
    assert shares(step(scheduler)) == [("interactive 0", 1), ("high", 9), ("low", 16)]


def test_decoding_rows_and_a_chunk_of_lower_classes_share_what_is_borne() -> None:
    scheduler = scheduler_of(CPU, {"interactive": 1, "normal": 3, "background": 3})
    add(scheduler, "prompt", 500, priority="normal")
    for _ in range(12):
        plan = step(scheduler)
        chunk = next(row for row in plan.rows if row.seq.id == "prompt")
        assert chunk.known == 1 or ms(CPU, plan.work.rows) <= 1.5 * ms(CPU, 1)
        assert chunk.known >= 1


def test_a_full_batch_makes_way_for_a_higher_class() -> None:
    scheduler = make_scheduler(max_batch=3)
    for name, priority in (("n", "normal"), ("older", "background"), ("younger", "background")):
        add(scheduler, name, 40, priority=priority)  # type: ignore[arg-type]
        step(scheduler)
    add(scheduler, "speaks", 5, priority="interactive")
    add(scheduler, "alike", 5, priority="background")
    assert names(step(scheduler)) == {"n", "older", "speaks"}
    assert ids(scheduler.waiting) == ["younger", "alike"]
    add(scheduler, "too", 5, priority="interactive")
    assert names(step(scheduler)) == {"n", "speaks", "too"}
    add(scheduler, "another", 5, priority="background")
    assert names(step(scheduler)) == {"n", "speaks", "too"}
    assert ids(scheduler.waiting) == ["older", "younger", "alike", "another"]


def test_memory_is_made_free_for_a_higher_class() -> None:
    scheduler = make_scheduler(blocks=10)
    add(scheduler, "n", 40)
    add(scheduler, "b", 80, priority="background")
    for _ in range(4):
        step(scheduler)
    add(scheduler, "large", 60)
    assert "large" in names(step(scheduler))
    assert ids(scheduler.waiting) == ["b"]
    add(scheduler, "alike", 90)
    step(scheduler)
    assert ids(scheduler.waiting) == ["alike", "b"]  # its own class makes no way


def test_nobody_makes_way_for_one_that_would_not_fit_all_the_same() -> None:
    scheduler = make_scheduler(blocks=10)
    add(scheduler, "n", 60)
    for name in ("b", "c"):
        add(scheduler, name, 20, priority="background")
    for _ in range(4):
        step(scheduler)
    add(scheduler, "large", 110)
    for _ in range(4):
        assert names(step(scheduler)) == {"n", "b", "c"}
    assert scheduler.preemptions == 0
    assert ids(scheduler.waiting) == ["large"]
    scheduler.retire(next(seq for seq in scheduler if seq.id == "n"))
    assert "large" in names(step(scheduler)), "beside nobody of its class it fits"


def test_nobody_makes_way_for_a_prompt_that_is_in_the_cache() -> None:
    scheduler = make_scheduler(max_batch=2)
    add(scheduler, "first", 64, priority="interactive", max_tokens=1)
    step(scheduler)
    for name in ("b", "c"):
        add(scheduler, name, 20, priority="background")
    step(scheduler)
    known = make_request("first", [sum(b"first") * 5000 + i for i in range(64)])
    warm = Request(id="warm", prompt=known.prompt, sampling=known.sampling, priority="interactive", prefill_only=True)
    scheduler.submit(warm)
    plan = scheduler.schedule()
    assert [seq.id for seq in plan.warm] == ["warm"]
    assert names(plan) == {"b", "c"}
    assert scheduler.preemptions == 0
