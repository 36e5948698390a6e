"""Room for guesses: what is left when everyone has what is known, and never at anyone's cost."""

from __future__ import annotations

from fakes import make_request
from scheduling import add, ids, make_scheduler, shares, step

from paceline.engine.sequence import Sequence
from paceline.kernels.paging import BLOCK_SIZE


def test_guesses_come_last_and_share_the_budget() -> None:
    scheduler = make_scheduler(step_budget=30, guesses=lambda request: 15)
    for name in "ab":
        add(scheduler, name, 3)
    plan = step(scheduler)
    assert [row.guesses for row in plan.rows] == [0, 0]  # a prompt is not guessed at
    assert [row.guesses for row in step(scheduler).rows] == [14, 14]
    add(scheduler, "c", 20)
    plan = step(scheduler)
    assert [(row.known, row.guesses) for row in plan.rows] == [(1, 4), (1, 4), (20, 0)]


def test_background_requests_get_what_the_others_leave() -> None:
    scheduler = make_scheduler(step_budget=30, guesses=lambda request: 15, max_batch=3)
    add(scheduler, "back", 4, priority="background")
    add(scheduler, "normal", 5)
    step(scheduler)
    assert {row.seq.id: row.guesses for row in step(scheduler).rows} == {"normal": 15, "back": 13}
    add(scheduler, "more", 5, max_tokens=9)
    step(scheduler)
    assert {row.seq.id: row.guesses for row in step(scheduler).rows} == {"normal": 13, "more": 7, "back": 7}


def test_guesses_end_where_the_reply_or_the_context_does() -> None:
    scheduler = make_scheduler(guesses=lambda request: 63, context_length=40)
    short, near = add(scheduler, "a", 3, max_tokens=5), add(scheduler, "b", 30)
    limited = make_scheduler(guesses=lambda request: 4)
    add(limited, "c", 3)
    step(scheduler)
    step(limited)
    # One token is there; of the four left the last needs no guess. 31 tokens; the 40th ends the context.
    assert {row.seq.id: row.guesses for row in step(scheduler).rows} == {"a": 3, "b": 8}
    assert [row.guesses for row in step(limited).rows] == [4]
    step(scheduler)
    assert [row.guesses for row in scheduler.schedule().rows if row.seq is short] == [1]
    assert near.output_count == 3


def test_a_request_without_guesses_gets_none_beside_one_that_has_them() -> None:
    scheduler = make_scheduler(guesses=lambda request: 0 if request.id == "none" else 6)
    for name in ("none", "some"):
        add(scheduler, name, 3)
    step(scheduler)
    assert {row.seq.id: row.guesses for row in step(scheduler).rows} == {"none": 0, "some": 6}


def test_a_guess_neither_evicts_nor_preempts() -> None:
    scheduler = make_scheduler(blocks=4, context_length=4 * BLOCK_SIZE, guesses=lambda request: 40, step_budget=100)
    cached = add(scheduler, "cached", 2 * BLOCK_SIZE, max_tokens=1)
    step(scheduler)
    assert scheduler.pages.pool.cached == 2
    one = add(scheduler, "one", 10)
    two = add(scheduler, "two", 10)
    step(scheduler)
    assert scheduler.pages.pool.free == 0
    plan = step(scheduler)
    assert {row.seq.id: row.guesses for row in plan.rows} == {"one": 5, "two": 5}  # what is left of their own blocks
    assert scheduler.pages.pool.cached == 2
    assert scheduler.preemptions == 0
    again = make_request("again", [*cached.request.prompt, 1])
    assert scheduler.pages.admit(Sequence(again, 9)) == 2 * BLOCK_SIZE
    assert one.output_count == two.output_count == 2


def test_spare_blocks_serve_guesses_alone() -> None:
    scheduler = make_scheduler(blocks=1, spare=4, context_length=BLOCK_SIZE, guesses=lambda request: 40, max_batch=2)
    seq = add(scheduler, "a", 4)
    add(scheduler, "b", 4)
    step(scheduler)
    assert ids(scheduler.running) == ["a"]  # the spare blocks are no room
    roomy = make_scheduler(blocks=1, spare=4, context_length=100, guesses=lambda request: 40)
    add(roomy, "a", 4)
    step(roomy)
    assert [row.guesses for row in step(roomy).rows] == [40]
    assert roomy.pages.pool.free == 4
    assert len(seq.blocks) == 1


def test_a_row_planned_already_is_taken_back_when_an_older_prompt_needs_its_memory() -> None:
    scheduler = make_scheduler(blocks=5, context_length=5 * BLOCK_SIZE, step_budget=11)
    normal = add(scheduler, "normal", 14)
    step(scheduler)
    step(scheduler)
    add(scheduler, "interactive", 63, priority="interactive")
    while scheduler.preemptions == 0:
        plan = step(scheduler)
    assert shares(plan) == [("interactive", 10)]
    assert ids(scheduler.waiting) == ["normal"]
    assert normal.pending == len(normal.tokens)
