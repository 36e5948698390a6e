"""Who runs and with how many tokens; the model is played by a counter, so no tensor is needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pytest
from fakes import make_request
from scheduling import add, ids, make_scheduler, shares, step

from paceline.engine.build import row_limit
from paceline.engine.errors import OverloadedError, RequestError
from paceline.kernels.paging import BLOCK_SIZE
from paceline.spec.cost import StepCost, Work

# Milliseconds by rows of a small model on two cores: nearly flat to 8 rows, then proportional.
REALISTIC = {1: 7.5, 2: 7.6, 4: 8.0, 8: 9.5, 16: 14.0, 32: 24.0, 64: 44.0}


def test_nothing_to_do_is_an_empty_plan() -> None:
    plan = make_scheduler().schedule()
    assert (plan.rows, plan.work.rows) == ([], 0)


def test_decoding_comes_first_and_one_budget_holds_for_all() -> None:
    scheduler = make_scheduler(step_budget=20)
    for name in "ab":
        add(scheduler, name, 3)
    assert shares(step(scheduler)) == [("a", 3), ("b", 3)]
    add(scheduler, "c", 50)
    assert shares(step(scheduler)) == [("a", 1), ("b", 1), ("c", 18)]
    add(scheduler, "d", 5)
    assert shares(step(scheduler)) == [("a", 1), ("b", 1), ("c", 18)]  # c's prompt goes on before another begins
    assert ids(scheduler.waiting) == ["d"]
    plan = step(scheduler)
    assert shares(plan) == [("a", 1), ("b", 1), ("c", 14), ("d", 4)]
    assert [row.samples for row in plan.rows] == [True, True, True, False]
    assert plan.work.rows == 20
    assert shares(step(scheduler)) == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]


def test_a_chunk_samples_only_when_it_ends_the_known_tokens() -> None:
    scheduler = make_scheduler(step_budget=8)
    seq = add(scheduler, "a", 17)
    plans = [step(scheduler) for _ in range(4)]
    assert [plan.rows[0].known for plan in plans] == [8, 8, 1, 1]
    assert [plan.rows[0].samples for plan in plans] == [False, False, True, True]
    assert seq.output_count == 2


def test_no_more_run_than_the_batch_holds() -> None:
    scheduler = make_scheduler(max_batch=2)
    for name in "abc":
        add(scheduler, name, 3, max_tokens=2)
    step(scheduler)
    assert (ids(scheduler.running), ids(scheduler.waiting)) == (["a", "b"], ["c"])
    step(scheduler)  # a and b end
    assert shares(step(scheduler)) == [("c", 3)]


def test_priorities_order_the_queue_the_prefills_and_the_decoding_rows() -> None:
    scheduler = make_scheduler(step_budget=12)
    add(scheduler, "background", 5, priority="background")
    add(scheduler, "normal", 5)
    add(scheduler, "interactive", 5, priority="interactive")
    add(scheduler, "second", 5, priority="interactive")
    assert ids(scheduler.waiting) == ["interactive", "second", "normal", "background"]
    assert shares(step(scheduler)) == [("interactive", 5), ("second", 5), ("normal", 2)]
    assert shares(step(scheduler)) == [("interactive", 1), ("second", 1), ("normal", 3), ("background", 5)]
    assert shares(step(scheduler)) == [("interactive", 1), ("second", 1), ("normal", 1), ("background", 1)]


def test_alone_a_prompt_takes_the_whole_budget_whatever_the_limit() -> None:
    scheduler = make_scheduler(step_budget=64, limit=lambda *_: 1)
    add(scheduler, "a", 100)
    assert shares(step(scheduler)) == [("a", 64)]


def test_the_limit_is_asked_for_each_prompt_with_what_is_planned_before_it() -> None:
    asked = []

    def limit(streams: Mapping[int, Work], rank: int, planned: Work, context: int, most: int) -> int:
        asked.append((dict(streams), rank, planned, context, most))
        return 5 if context == 0 else 2

    scheduler = make_scheduler(step_budget=32, limit=limit)
    for name in "ab":
        add(scheduler, name, 2)
    step(scheduler)
    add(scheduler, "c", 6)
    assert shares(step(scheduler)) == [("a", 1), ("b", 1), ("c", 5)]
    streams = Work(0).beside(2, 1).beside(2, 1)
    assert asked == [({1: streams}, 1, streams, 0, 30)]
    add(scheduler, "d", 100)
    assert shares(step(scheduler)) == [("a", 1), ("b", 1), ("c", 1), ("d", 1)]
    streams = Work(0).beside(3, 1).beside(3, 1)
    assert asked[1:] == [({1: streams}, 1, streams, 5, 30), ({1: streams}, 1, streams.beside(5, 1), 0, 1)]


def test_beside_streams_a_prompt_makes_progress_whatever_the_limit_but_no_second_one_begins() -> None:
    scheduler = make_scheduler(step_budget=32, limit=lambda *_: 0)
    add(scheduler, "a", 2)
    step(scheduler)
    for name in "bc":
        add(scheduler, name, 3)
    assert shares(step(scheduler)) == [("a", 1), ("b", 1)]
    assert shares(step(scheduler)) == [("a", 1), ("b", 1)]
    assert ids(scheduler.waiting) == ["c"]


@pytest.mark.parametrize("streams", [1, 4, 8])
@pytest.mark.parametrize("points", [REALISTIC, {1: 5.0, 1000: 5.0}, {1: 1.0, 2: 50.0}], ids=["cpu", "flat", "steep"])
def test_a_long_prompt_stretches_no_step_beyond_two_ordinary_ones(points: dict[int, float], streams: int) -> None:
    cost = StepCost(points)
    scheduler = make_scheduler(
        blocks=400,
        step_budget=512,
        max_batch=streams + 1,
        limit=partial(row_limit, cost),
    )
    runners = [add(scheduler, f"s{i}", 5, max_tokens=2500) for i in range(streams)]
    step(scheduler)
    long = add(scheduler, "long", 2000)
    steps = 0
    while long.output_count == 0:
        before = long.num_computed
        counts = [seq.output_count for seq in runners]
        plan = step(scheduler)
        assert [seq.output_count for seq in runners] == [count + 1 for count in counts], "a stream was left out"
        assert long.num_computed > before, "the prompt makes progress in every step"
        chunk = long.num_computed - before
        assert plan.work.rows == streams + chunk <= 512
        if chunk > 1:  # one token per step is the least there is
            assert cost.ms(Work(plan.work.rows)) <= 2 * cost.ms(Work(streams))
        steps += 1
    if points is REALISTIC:
        assert 2000 / 64 < steps < 2000 / 8
        assert any(cost.ms(Work(streams + rows)) > 1.8 * cost.ms(Work(streams)) for rows in range(2000 // steps + 2))


def test_memory_is_taken_from_the_youngest_of_the_lowest_priority() -> None:
    scheduler = make_scheduler(blocks=4, context_length=4 * BLOCK_SIZE)
    for name in ("background-old", "background-young"):
        add(scheduler, name, 10, priority="background")
    add(scheduler, "normal-old", 14)
    add(scheduler, "normal-young", 11)
    victims: list[str] = []
    while len(victims) < 3:  # one block each, until the normal ones need more, at different times
        running = ids(scheduler.running)
        step(scheduler)
        victims += [name for name in running if name not in ids(scheduler.running)]
    assert victims == ["background-young", "background-old", "normal-young"]
    assert ids(scheduler.running) == ["normal-old"]
    assert ids(scheduler.waiting) == ["normal-young", "background-old", "background-young"]
    assert scheduler.preemptions == 3


def test_a_preempted_sequence_keeps_its_tokens_and_its_place_in_the_queue() -> None:
    scheduler = make_scheduler(blocks=4, context_length=4 * BLOCK_SIZE)
    first, second = add(scheduler, "a", 30, max_tokens=20), add(scheduler, "b", 30, max_tokens=20)
    for _ in range(3):
        step(scheduler)  # 33 tokens each, 32 of them computed
    late = add(scheduler, "late", 30)
    step(scheduler)
    assert scheduler.preemptions == 1
    assert ids(scheduler.running) == ["a"]
    assert ids(scheduler.waiting) == ["b", "late"]
    assert (second.num_computed, second.blocks, second.output_count) == (0, [], 3)
    while not second.blocks:
        step(scheduler)
    assert first.output_count == 20
    assert second.output_count == 4
    assert late.output_count == 0
    assert second.num_computed == 33


def test_a_sequence_that_finds_no_room_waits_without_losing_anything() -> None:
    """The youngest cannot preempt anyone: it is left out of the step and goes on once there is room."""
    scheduler = make_scheduler(blocks=2, context_length=2 * BLOCK_SIZE)
    add(scheduler, "old", 10, max_tokens=6)
    young = add(scheduler, "young", 14)
    for _ in range(3):
        assert len(step(scheduler).rows) == 2
    for _ in range(3):
        assert shares(step(scheduler)) == [("old", 1)]
        assert (young.num_computed, len(young.blocks), young.output_count) == (BLOCK_SIZE, 1, 3)
    assert shares(step(scheduler)) == [("young", 1)]  # the old one has ended
    assert scheduler.preemptions == 0


def test_beside_others_only_what_fits_whole_is_let_in() -> None:
    scheduler = make_scheduler(blocks=6, step_budget=200, context_length=6 * BLOCK_SIZE)
    add(scheduler, "a", 20, max_tokens=4)
    step(scheduler)  # holds 2 of 6 blocks
    waiting = add(scheduler, "b", 4 * BLOCK_SIZE)  # fits, its next token does not
    add(scheduler, "c", 4)
    assert shares(step(scheduler)) == [("a", 1)]
    assert ids(scheduler.waiting) == ["b", "c"]  # nobody overtakes
    assert (waiting.blocks, waiting.num_computed, waiting.cached_tokens) == ([], 0, None)
    step(scheduler)
    step(scheduler)  # a has its four tokens
    assert shares(step(scheduler)) == [("b", 4 * BLOCK_SIZE), ("c", 4)]
    assert scheduler.preemptions == 0


def test_what_fits_to_the_last_slot_is_let_in() -> None:
    scheduler = make_scheduler(blocks=6, step_budget=200, context_length=6 * BLOCK_SIZE)
    add(scheduler, "a", 20)
    step(scheduler)
    add(scheduler, "b", 4 * BLOCK_SIZE - 1)
    assert shares(step(scheduler)) == [("a", 1), ("b", 4 * BLOCK_SIZE - 1)]


def test_cached_tokens_are_those_found_at_first_admission() -> None:
    scheduler = make_scheduler(step_budget=200)
    first = add(scheduler, "a", 40)
    step(scheduler)
    assert first.cached_tokens == 0
    again = scheduler.submit(make_request("again", first.request.prompt))
    plan = step(scheduler)
    assert shares(plan) == [("a", 1), ("again", 8)]
    assert again.cached_tokens == 32
    scheduler._preempt(plan, first)
    assert ("a", 10) in shares(step(scheduler))  # 42 tokens, of which it finds 32 that it left itself
    assert first.cached_tokens == 0


def test_retire_gives_everything_back_wherever_the_sequence_is() -> None:
    scheduler = make_scheduler(max_batch=1, step_budget=10)
    running, waiting = add(scheduler, "a", 30), add(scheduler, "b", 30)
    step(scheduler)  # in the middle of a's prompt
    assert scheduler.find("a") is running
    assert scheduler.find("b") is waiting
    assert scheduler.find("c") is None
    for seq in (waiting, running):
        scheduler.retire(seq)
    assert (list(scheduler), scheduler.pages.pool.held) == ([], 0)


def test_a_prompt_that_leaves_no_room_for_a_token_is_refused() -> None:
    scheduler = make_scheduler(context_length=32)
    scheduler.validate(make_request("fits", [1] * 31))
    with pytest.raises(RequestError, match="maximum context length is 32 tokens, but the prompt has 32") as caught:
        scheduler.validate(make_request("long", [1] * 32))
    assert (caught.value.param, caught.value.code) == ("messages", "context_length_exceeded")


def test_a_full_queue_is_refused() -> None:
    scheduler = make_scheduler(queue_limit=2, max_batch=2)
    for name in "abc":
        add(scheduler, name, 3)
    scheduler.validate(make_request("d", [1]), queued=0)  # two places are free and two may wait
    with pytest.raises(OverloadedError, match="2 requests are waiting"):
        scheduler.validate(make_request("d", [1]), queued=1)
    step(scheduler)  # two run now, one waits
    scheduler.validate(make_request("d", [1]))
    add(scheduler, "d", 3)
    with pytest.raises(OverloadedError):
        scheduler.validate(make_request("e", [1]))


def test_of_two_prompts_under_way_the_second_is_left_out_when_the_streams_bear_no_more() -> None:
    bears = {0: 31, 1: 31}  # rows of a prompt, by its class
    scheduler = make_scheduler(step_budget=32, limit=lambda *given: min(bears[given[1]], given[-1]))
    add(scheduler, "stream", 2, priority="interactive")
    step(scheduler)
    add(scheduler, "normal", 60)
    step(scheduler)
    add(scheduler, "interactive", 40, priority="interactive")
    step(scheduler)
    bears[1] = 0
    assert shares(step(scheduler)) == [("stream", 1), ("interactive", 9)]
    assert shares(step(scheduler)) == [("stream", 1), ("interactive", 1), ("normal", 1)]
