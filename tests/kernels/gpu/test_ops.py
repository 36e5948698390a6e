"""The Triton backend's table, interpreted; what a pass computes with it is in tests/engine/test_triton_equality.py."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from jobs import branching, layout_of, tables
from matrices import matrix_of

from paceline.kernels.backend import BackendError, Options, load
from paceline.kernels.kv_cache import CacheShape


def test_the_table_is_triton_and_complete() -> None:
    ops = load("triton")
    assert ops.name == "triton"
    assert not ops.asynchronous, "interpreted kernels run on the host"
    assert ops.sizes == (), "nor is anything prepared"
    assert ops.guessing is not None
    data = ("name", "asynchronous", "sizes", "guessing")
    assert all(callable(getattr(ops, field.name)) for field in dataclasses.fields(ops) if field.name not in data)


def test_unknown_formats_are_refused_with_the_choices() -> None:
    with pytest.raises(BackendError, match=r"weight format 'q3'; choose one of stored, q4, .*f32\.$"):
        load("triton", Options(weights="q3"))
    with pytest.raises(BackendError, match=r"cache format 'f8'; choose one of auto, .*fp8\.$"):
        load("triton", Options(kv="f8"))


@pytest.mark.parametrize(
    ("weights", "dtype"),
    [("stored", torch.float32), ("q4", torch.float32), ("f16", torch.float16), ("f32", torch.float32)],
)
def test_floats_are_computed_in_what_they_are_held_in(weights: str, dtype: torch.dtype) -> None:
    ops = load("triton", Options(weights=weights))
    table = ops.pack_table(matrix_of(torch.ones(64, 64)))
    assert ops.embed(table, torch.tensor([1])).dtype == dtype
    assert ops.allocate(CacheShape(1, 2, 16), 3).k.dtype == dtype
    x = ops.embed(table, torch.tensor([1]))
    assert ops.linear(x, table, wide=True).dtype == torch.float32


def test_models_that_do_not_fit_are_refused() -> None:
    ops = load("triton")
    ops.check(CacheShape(1, 2, 80))
    with pytest.raises(BackendError, match="multiple of 16 up to 256, this model's is 20"):
        ops.check(CacheShape(1, 2, 20))


def test_packing_takes_the_memory_that_was_announced() -> None:
    for weights in ("stored", "q4", "q4_128", "q8", "q8_128", "f16"):
        ops = load("triton", Options(weights=weights))
        for shape in ((48, 64), (33, 96), (7, 256)):
            matrix = matrix_of(torch.randn(shape))
            packed = ops.pack(matrix)
            held = packed.data.nbytes + (0 if packed.scales is None else packed.scales.nbytes)
            assert ops.packed_bytes(matrix) == held, (weights, shape)


def test_a_layout_can_be_prepared_by_itself_and_one_of_a_pass_is(rng: torch.Generator) -> None:
    ops = load("triton")
    jobs = [branching(20, 6, rng)]
    prepared = ops.prepare(layout_of(jobs, tables(jobs, 4, rng)))
    assert prepared.positions.tolist() == jobs[0].positions
    assert ops.prepare(prepared) is prepared


def test_the_host_reads_floats(rng: torch.Generator) -> None:
    values = torch.randn(3, 5, generator=rng)
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        got = load("triton").host(values.to(dtype))
        assert got.dtype == np.float32
        assert np.array_equal(got, values.to(dtype).float().numpy())
