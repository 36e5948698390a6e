"""Passes over padded, static memory: what a graph would read and write, with a recorder in the place of CUDA's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from jobs import Job, branching, chain, layout_of, new_slots, tables

from paceline.kernels.batch import Batch
from paceline.kernels.gpu.passes import SIZES, Capture, DeviceBatch, Machine, Passes, Results
from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.kv_cache.triton_impl import PagedCache, allocate
from paceline.kernels.sample import Draw

CPU = torch.device("cpu")
BLOCKS = 40


class Recorder:
    """Stands for CUDA graphs: a replay runs the function again and leaves its results where the first run left them."""

    def __init__(self, fails: bool = False) -> None:
        self.captures = self.replays = 0
        self._fails = fails

    def __call__(self) -> Capture:
        return self._capture

    def _capture(self, launch: Callable[[], Results]) -> tuple[Callable[[], None], Results]:
        if self._fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.captures += 1
        kept = tuple(torch.empty_like(result) for result in launch())  # a capture computes nothing

        def replay() -> None:
            self.replays += 1
            for place, result in zip(kept, launch(), strict=True):
                place.copy_(result)

        return replay, kept


def cache() -> PagedCache:
    return allocate(CacheShape(1, 2, 16), BLOCKS, form="auto", dtype=torch.float32, device=CPU)


def batch_of(jobs: list[Job], rng: torch.Generator, sampled: list[int] | None = None) -> Batch:
    owned = tables(jobs, BLOCKS, rng)
    rows = sum(job.rows for job in jobs)
    return Batch(
        ids=np.arange(100, 100 + rows),
        positions=np.array([position for job in jobs for position in job.positions]),
        slots=np.array(new_slots(jobs, owned)),
        sampled=np.array(range(rows) if sampled is None else sampled, np.int64),
        layout=layout_of(jobs, owned),
    )


def seen(batch: DeviceBatch, cache: PagedCache) -> Results:
    """Everything a pass may read of its batch, by sampled rows and by rows."""
    rows = torch.stack((batch.ids, batch.positions, batch.slots), 1)
    return rows[batch.sampled.long()], rows


def check(results: Results, batch: Batch) -> None:
    rows = np.stack((batch.ids, batch.positions, batch.slots), 1)
    assert results[0].tolist() == rows[batch.sampled].tolist()
    assert results[1].tolist() == rows.tolist()


def jobs_of(rng: torch.Generator) -> list[tuple[list[Job], list[int] | None]]:
    return [
        ([chain(5, 1)], None),
        ([branching(20, 7, rng)], None),
        ([branching(20, 8, rng)], None),
        ([chain(0, 5)], [4]),
        ([chain(0, 17)], [16]),
        ([chain(3, 16)], [15]),
        ([chain(0, 70), branching(9, 5, rng)], [69, 70, 71, 72, 73, 74]),
        ([chain(0, 1)] * 16, None),
        ([chain(0, 30)], []),
    ]


@pytest.mark.parametrize("captures", [False, True])
def test_a_pass_sees_its_batch_whatever_size_it_is_padded_to(rng: torch.Generator, captures: bool) -> None:
    recorder = Recorder()
    run = Passes(Machine(CPU, 4, recorder if captures else None)).compile(seen)
    place = cache()
    batches = [batch_of(jobs, rng, sampled) for jobs, sampled in jobs_of(rng)]
    for batch in [*batches, *batches[::-1]]:
        check(run(batch, place), batch)
    if captures:
        assert recorder.captures < len(batches), "sizes are shared"
        assert recorder.replays == 2 * len(batches), "every pass is a replay, the first of a size, too"


def test_sampled_rows_are_no_more_than_one_kernel_takes(rng: torch.Generator) -> None:
    """Up to 64 rows: padded to more, the head would sum in the order of a library."""
    made = []

    def counted(batch: DeviceBatch, cache: PagedCache) -> Results:
        made.append(len(batch.sampled))
        return seen(batch, cache)

    run = Passes(Machine(CPU, 4, None)).compile(counted)
    for rows, sampled in ((64, 63), (60, 20), (50, 49), (16, 15), (100, 60)):
        batch = batch_of([chain(0, rows)], rng, list(range(sampled)))
        check(run(batch, cache()), batch)
    assert max(made) <= 64


def test_sampled_rows_of_many_trees_share_sizes(rng: torch.Generator) -> None:
    recorder, place = Recorder(), cache()
    run = Passes(Machine(CPU, 4, recorder)).compile(seen)
    for sampled in (65, 80, 97, 127):
        batch = batch_of([chain(0, 180)], rng, list(range(sampled)))
        check(run(batch, place), batch)
    assert recorder.captures == 1


def test_sequences_may_share_more_blocks_than_there_are() -> None:
    """One prefix, named by each of them."""
    recorder, place = Recorder(), cache()
    run = Passes(Machine(CPU, 4, recorder)).compile(seen)
    for streams in (1, 2, 8, 2):
        jobs = [chain(16 * BLOCKS - 8, 1)] * streams
        batch = Batch(
            ids=np.arange(streams),
            positions=np.array([jobs[0].context] * streams),
            slots=np.array([jobs[0].context] * streams),
            sampled=np.arange(streams),
            layout=layout_of(jobs, [list(range(BLOCKS))] * streams),
        )
        check(run(batch, place), batch)


def test_padding_rows_can_be_computed_and_store_nothing(rng: torch.Generator) -> None:
    def raw(batch: DeviceBatch, cache: PagedCache) -> Results:
        padding = batch.slots < 0
        assert int(padding.sum()) == 1
        assert batch.ids[padding].tolist() == batch.positions[padding].tolist() == [0]
        assert batch.layout is not None
        return (batch.sampled,)

    Passes(Machine(CPU, 4, None)).compile(raw)(batch_of([branching(20, 7, rng)], rng), cache())


def test_features_come_with_their_rows_and_no_others(rng: torch.Generator) -> None:
    def fed(batch: DeviceBatch, cache: None) -> Results:
        assert batch.features is not None
        return (batch.features * 2,)

    recorder = Recorder()
    run = Passes(Machine(CPU, 4, recorder)).compile(fed)
    for rows, width in ((5, 3), (6, 3), (5, 3), (5, 8)):
        features = torch.randn(rows, width, generator=rng).numpy()
        batch = batch_of([chain(0, rows)], rng)._replace(features=features)
        assert np.array_equal(run(batch, None)[0].numpy(), features * 2)
    assert recorder.captures == 2
    with pytest.raises(ValueError, match="one row per id"):
        run(batch_of([chain(0, 4)], rng)._replace(features=features), None)


def test_draws_come_with_the_sampled_rows(rng: torch.Generator) -> None:
    """Of every number of rows; those of padding rows are greedy."""

    def ranks(batch: DeviceBatch, cache: None) -> Results:
        assert batch.draws is not None
        seed, position, temperature = batch.draws
        assert all(values.data_ptr() % 16 == 0 for values in batch.draws)
        assert len(seed) == len(batch.sampled)
        assert sorted(temperature.tolist())[: len(seed) - count] == [0.0] * (len(seed) - count)
        return torch.stack((seed, position, temperature.view(torch.int64)), 1), batch.ids

    recorder = Recorder()
    run = Passes(Machine(CPU, 4, recorder)).compile(ranks)
    for rows, sampled in ((5, None), (1, None), (6, None), (7, [2, 6]), (6, None)):
        count = rows if sampled is None else len(sampled)
        draws = [Draw(2**64 - 1 - i, 2**33 + i, 0.5 + i) for i in range(count)]
        batch = batch_of([chain(0, rows)], rng, sampled)._replace(draws=draws)
        words, ids = run(batch, None)
        assert (words[:, 0] & 0xFF).tolist() == [0xFF - i for i in range(count)]
        assert words[:, 1].tolist() == [2**33 + i for i in range(count)]
        assert words[:, 2].contiguous().view(torch.float64).tolist() == [0.5 + i for i in range(count)]
        assert ids.tolist() == batch.ids.tolist()
    assert recorder.captures == 3


def test_caches_and_passes_have_graphs_of_their_own(rng: torch.Generator) -> None:
    recorder = Recorder()
    passes = Passes(Machine(CPU, 4, recorder))
    one, other = passes.compile(seen), passes.compile(seen)
    first, second = cache(), cache()
    batch, longer = batch_of([chain(5, 3)], rng), batch_of([chain(7, 3)], rng)
    results = one(batch, first)
    check(other(longer, first), longer)
    check(one(longer, second), longer)
    assert recorder.captures == 3
    check(one(batch, first), batch)
    del results


def test_where_graphs_cannot_be_captured_passes_are_launched_and_that_is_said_once(
    rng: torch.Generator, caplog: pytest.LogCaptureFixture
) -> None:
    passes = Passes(Machine(CPU, 4, Recorder(fails=True)))
    for run in (passes.compile(seen), passes.compile(seen)):
        for jobs, sampled in jobs_of(rng):
            batch = batch_of(jobs, rng, sampled)
            check(run(batch, cache()), batch)
    (message,) = caplog.messages
    assert message.startswith("Passes run without CUDA graphs")
    assert message.endswith("operation not permitted when stream is capturing")


def test_an_error_of_the_pass_itself_is_not_taken_for_one_of_capturing(rng: torch.Generator) -> None:
    def broken(batch: DeviceBatch, cache: Any) -> Results:
        raise ValueError("broken")

    recorder = Recorder()
    passes = Passes(Machine(CPU, 4, recorder))
    with pytest.raises(ValueError, match="broken"):
        passes.compile(broken)(batch_of([chain(5, 1)], rng), cache())
    batch = batch_of([chain(5, 1)], rng)
    check(passes.compile(seen)(batch, cache()), batch)
    assert recorder.captures == 1


def test_passes_beyond_all_sizes_are_computed_and_not_kept(rng: torch.Generator) -> None:
    recorder = Recorder()
    rows = SIZES[-1] + 1
    batch = Batch(
        ids=np.arange(rows),
        positions=np.arange(rows),
        slots=np.zeros(rows, np.int64),
        sampled=np.array([rows - 1]),
        layout=layout_of([chain(0, rows)], [list(range(-(-rows // 16)))]),
    )
    run = Passes(Machine(CPU, 4, recorder)).compile(seen)
    for _ in range(2):
        check(run(batch, cache()), batch)
    assert recorder.captures == 0
