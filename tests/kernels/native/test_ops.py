"""The table of native ops, and programs on several threads."""

from __future__ import annotations

import dataclasses
import os
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from matrices import matrix_of
from native_ops import Program, pack, rows_only

from paceline.kernels.backend import ACTIVATIONS, BackendError, Options, load
from paceline.kernels.kv_cache import CacheShape
from paceline.kernels.native.ops import physical_cores
from paceline.kernels.native.recorder import OUTLIER
from paceline.kernels.sample import Draw


def test_the_table_is_native_and_complete() -> None:
    ops = load("native", Options(threads=1))
    assert ops.name == "native"
    assert not ops.asynchronous
    assert ops.guessing is None, "the host has everything at hand"
    data = ("name", "asynchronous", "sizes", "guessing")
    assert all(callable(getattr(ops, field.name)) for field in dataclasses.fields(ops) if field.name not in data)


def test_unknown_formats_are_refused_with_the_choices() -> None:
    with pytest.raises(BackendError, match=r"weight format 'q3'; choose one of stored, q4, .*f32\.$"):
        load("native", Options(weights="q3"))
    with pytest.raises(BackendError, match=r"activation format 'int4'; choose one of mixed, int8, int16\.$"):
        load("native", Options(activations="int4"))
    with pytest.raises(BackendError, match=r"cache format 'f8'; choose one of auto, .*fp8\.$"):
        load("native", Options(kv="f8"))
    with pytest.raises(BackendError, match=r"as f16 or int8, not as bf16; choose one of these\.$"):
        load("native", Options(kv="bf16"))


def test_every_activation_format_has_its_rule() -> None:
    assert tuple(OUTLIER) == ACTIVATIONS


def test_packed_weights_are_the_same_for_all_activations(tmp_path: Path) -> None:
    path, stamps = tmp_path / "packed.bin", set()
    for activations in ACTIVATIONS:
        ops = load("native", Options(threads=1, activations=activations, store=path, fingerprint="f"))
        ops.pack(matrix_of(torch.ones(4, 4)))
        ops.finish()
        stamps.add(path.stat().st_mtime_ns)
    assert len(stamps) == 1


def test_weights_of_their_own_form_leave_the_file_of_packed_weights_alone(tmp_path: Path) -> None:
    """A drafter's tensors, before and after all others are packed, under the names that the model's have."""
    path, rows = tmp_path / "packed.bin", [Draw(0, 0, 0.0)]
    model, drafter = torch.eye(4), 2 * torch.eye(4).flip(0)
    stamps = set()
    for late in (False, True, True):
        ops = load("native", Options(threads=1, store=path, fingerprint="f"))
        pack_drafter = lambda ops=ops: (  # noqa: E731
            ops.pack(matrix_of(drafter), form="f32"),
            ops.pack_table(matrix_of(drafter), form="f32"),
        )
        weight, table = ops.pack(matrix_of(model)), None
        if not late:
            small, table = pack_drafter()
        ops.finish()
        if late:
            small, table = pack_drafter()
        stamps.add((path.stat().st_mtime_ns, path.stat().st_size))

        def forward(batch: Any, cache: Any, ops: Any = ops, all_: Any = (weight, small, table)) -> Any:
            x = ops.select(ops.embed(all_[2], batch.ids), batch.sampled)
            return ops.linear(x, all_[0]), ops.linear(x, all_[1])

        whole, half = ops.compile(forward)(rows_only(4), None)
        assert np.array_equal(whole, drafter.numpy())
        assert np.array_equal(half, 4 * model.numpy())
        assert ops.sample(whole[:1], rows) == [3]
    assert len(stamps) == 1, "the file was written again"


@pytest.mark.parametrize("head_dim", [8, 24, 72, 100])
def test_a_head_size_that_does_not_fit_is_refused(head_dim: int) -> None:
    ops = load("native", Options(threads=1))
    with pytest.raises(BackendError, match=rf"multiple of 16, this model's is {head_dim}; use --backend reference\.$"):
        ops.check(CacheShape(1, 1, head_dim))
    ops.check(CacheShape(1, 1, 48))


@pytest.mark.parametrize("kv", ["f16", "int8"])
@pytest.mark.parametrize("head_dim", [16, 64, 80])
def test_a_block_takes_what_its_elements_take(kv: str, head_dim: int) -> None:
    """Two sides of sixteen slots: two bytes an element, or one and a scale for each slot and head."""
    ops = load("native", Options(threads=1, kv=kv))
    slot = head_dim * 2 if kv == "f16" else head_dim + 4
    shape = CacheShape(3, 2, head_dim)
    assert ops.block_bytes(shape) == 3 * 2 * 2 * 16 * slot
    assert ops.block_bytes(shape) == ops.allocate(shape, 7).handle.block_bytes, "what the kernels themselves say"


def test_cores_are_counted_within_what_the_process_may_use() -> None:

    assert 1 <= physical_cores() <= len(os.sched_getaffinity(0))


def test_sampling_takes_slices_of_rows_and_nothing_that_is_not_float32() -> None:
    ops = load("native", Options(threads=1))
    logits = np.array([[0, 1, 2], [5, 4, 3], [0, 9, 0]], np.float32)
    assert ops.sample(logits[1:], [Draw(0, 0, 0.0)] * 2) == [0, 1]
    assert ops.sample(logits[:0], []) == []
    for wrong in (logits.astype(np.float64), logits.T):
        with pytest.raises(TypeError, match="logits must be a contiguous array of float32"):
            ops.sample(wrong, [Draw(0, 0, 0.0)] * 3)


def test_threads_of_a_pool_wait_for_each_other_and_can_be_many(module: ModuleType) -> None:
    """More threads than rows, than blocks and than cores; pools made and dropped; two programs of one pool in turn."""
    x = np.random.default_rng(1).standard_normal((7, 48), np.float32)
    matrix = torch.from_numpy(np.random.default_rng(2).standard_normal((48, 48), np.float32)) / 48**0.5
    results = []
    for threads in (1, 2, 3, 5):
        pool = module.Pool(threads)
        assert pool.threads == threads
        weight = pack(module, matrix, "q8")
        programs = []
        for _ in range(2):
            program = Program(module, pool)
            value = program.feed(x)
            for _ in range(12):
                value = program.linear(value, weight, residual=value)
            programs.append((program, value))
        for rows in (7, 1, 4, 5, 7):
            for program, value in programs:
                program.run(rows_only(rows))
                results.append(program.read(value, rows)[0])
    assert all(np.array_equal(result, results[0]) for result in results)


def test_two_programs_of_one_pool_may_run_at_once(module: ModuleType) -> None:
    """The interpreter's lock is released during a run: the pool serves one caller after the other."""
    pool = module.Pool(3)
    x = np.random.default_rng(3).standard_normal((40, 32), np.float32)
    weight = pack(module, torch.eye(32) * 2)
    failures: list[str] = []

    def work(name: str) -> None:
        program = Program(module, pool)
        value = program.feed(x)
        for _ in range(4):
            value = program.linear(value, weight)
        for rows in range(1, 41):
            program.run(rows_only(rows))
            if not np.array_equal(program.read(value, rows), x[:rows] * 16):
                failures.append(f"{name}: {rows} rows")

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_result_that_is_still_looked_at_survives_a_larger_run(module: ModuleType, pool: Any) -> None:
    x = np.random.default_rng(4).standard_normal((200, 64), np.float32)
    program = Program(module, pool)
    value = program.feed(x)
    program.run(rows_only(2))
    view = program.native.view(value, 2)
    program.run(rows_only(200))
    assert np.array_equal(view, x[:2])
    larger = program.native.view(value, 200)
    del program
    assert np.array_equal(larger, x)
