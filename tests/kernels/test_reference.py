"""The table of reference ops: where it computes, in which type, and that it leaves no trace of autograd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from jobs import chain, tables
from matrices import matrix_of
from native_ops import batch_of, rows_only

from paceline.kernels.backend import Options, load
from paceline.kernels.kv_cache import CacheShape


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_a_pass_is_given_tensors_and_returns_float32(rng: torch.Generator) -> None:
    ops = load("reference")
    table = torch.randn(11, 4, generator=rng)
    packed = ops.pack_table(matrix_of(table.bfloat16()))
    jobs = [chain(0, 3), chain(5, 4)]
    batch = batch_of(jobs, tables(jobs, 4, rng), sampled=[2, 6])
    seen: list[Any] = []

    def forward(batch: Any, cache: Any) -> Any:
        seen.append(batch)
        x = ops.select(ops.embed(packed, batch.ids), batch.sampled)
        return x.bfloat16(), x

    run = ops.compile(forward)
    for _ in range(2):
        logits, hidden = run(batch, "cache")
    assert logits.dtype == torch.float32
    assert torch.equal(hidden, table.bfloat16().float()[[2, 6]])
    assert hidden.is_inference()
    assert len(seen) == 2, "it runs the function each time"
    for name in ("ids", "positions", "slots", "sampled"):
        rows = getattr(seen[0], name)
        assert rows.dtype == torch.int64
        assert rows.tolist() == getattr(batch, name).tolist()
    assert seen[0].layout is batch.layout
    assert seen[0].features is None


def test_a_pass_returns_whatever_its_function_returns(rng: torch.Generator) -> None:
    ops = load("reference")
    table = torch.randn(7, 4, generator=rng)
    packed = ops.pack_table(matrix_of(table))

    def forward(batch: Any, cache: Any) -> Any:
        x = ops.embed(packed, batch.ids)
        few = ops.select(x, batch.sampled)
        return few, few, x, few + 1

    results = ops.compile(forward)(rows_only(7, [3, 5]), None)
    for got, want in zip(results, (table[[3, 5]], table[[3, 5]], table, table[[3, 5]] + 1), strict=True):
        assert torch.equal(got, want)


def test_the_cpu_computes_in_float32_and_shares_the_hosts_memory() -> None:
    ops = load("reference")
    shape = CacheShape(2, 3, 8)
    cache = ops.allocate(shape, 5)
    assert cache.k.dtype == torch.float32
    assert ops.block_bytes(shape) * 5 == cache.k.nbytes + cache.v.nbytes
    assert ops.constant(np.ones(3, np.float32)).dtype == torch.float32
    assert ops.free_memory() is None
    ops.check(shape)


def test_a_gpu_has_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1234, 5678))
    ops = load("reference", Options(device="cuda"))
    assert ops.free_memory() == 1234
    shape = CacheShape(2, 3, 8)
    assert 2 * ops.block_bytes(shape) == load("reference").block_bytes(shape), "bfloat16"


@pytest.mark.usefixtures("threads")
def test_threads_are_set_when_asked_for() -> None:
    torch.set_num_threads(1)
    load("reference")
    assert torch.get_num_threads() == 1
    load("reference", Options(threads=2))
    assert torch.get_num_threads() == 2


def test_it_waits_for_the_device_it_computes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    load("reference").wait()
    assert waited == []
    load("reference", Options(device="cuda")).wait()
    assert waited == [torch.device("cuda")]
