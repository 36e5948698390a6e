"""Packed weights hold what a checkpoint stores, value for value; where they are rounded, they are rounded well."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matrices import dense, matrix_of
from stored_parts import Part, Stack, stored

from paceline.kernels.embed.triton_impl import embed, unpack
from paceline.kernels.gpu import packing
from paceline.kernels.gpu.packing import Packer, Weight

CPU = torch.device("cpu")
QUANTISED = {"q4": 32, "q8": 32, "q4_128": 128, "q8_128": 128}


def mapped(kind: str, rows: int, columns: int, seed: int = 0) -> Part:
    """Every integer and odd scales occur in the quantised kinds; the memory is read-only, as a mapped file's is."""
    part = stored(kind, rows, columns, seed, wild=True)
    part.bytes_.flags.writeable = False
    return part


def packer(weights: str = "stored", dtype: torch.dtype = torch.float32) -> Packer:
    return Packer(weights, dtype, CPU)


@pytest.mark.parametrize("columns", [32, 1056])
@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0", "F32", "F16", "BF16"])
def test_stored_values_come_out_bit_for_bit(kind: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_PIECE", 4)
    matrix = Stack([mapped(kind, 5, columns), mapped(kind, 2, columns, 1)])
    weight = packer().pack(matrix)
    assert torch.equal(unpack(weight), dense(matrix))
    assert weight.bits == {"Q4": 4, "Q8": 8}.get(kind[:2], 0)
    assert (weight.outputs, weight.inputs) == (7, columns)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_floats_are_held_in_the_compute_dtype(dtype: torch.dtype) -> None:
    for kind in ("F32", "F16", "BF16", "Q8_0"):
        matrix = mapped(kind, 5, 64)
        stack = Stack([matrix])
        weight = packer("bf16" if dtype == torch.bfloat16 else "f16", dtype).pack(stack)
        assert weight.data.dtype == dtype
        assert torch.equal(weight.data, dense(stack).to(dtype))


def test_parts_stored_differently_keep_their_values() -> None:
    mixed = Stack([mapped("Q4_1", 3, 64), mapped("Q8_0", 2, 64), mapped("F16", 3, 64)])
    weight = packer().pack(mixed)
    assert weight.bits == 0
    assert torch.equal(weight.data, dense(mixed))


def test_a_request_to_round_spares_what_is_stored_that_way() -> None:
    exact, other = Stack([mapped("Q4_1", 4, 64)]), Stack([mapped("Q8_0", 4, 64)])
    assert torch.equal(unpack(packer("q4").pack(exact)), dense(exact))
    assert torch.equal(unpack(packer("f32").pack(other)), dense(other))
    assert packer("q4").pack(other).bits == 4
    assert not torch.equal(unpack(packer().pack(other, form="q4")), dense(other))


@pytest.mark.parametrize("inputs", [1, 33, 129, 320])
@pytest.mark.parametrize("form", QUANTISED)
def test_rounding_errs_by_half_a_step_at_most(form: str, inputs: int) -> None:
    """A step is the spread of a group over its 15 intervals, or its largest magnitude over 127, as halves round it."""
    random = np.random.default_rng(inputs)
    values = (random.standard_normal((5, inputs)) * np.exp(random.uniform(-6, 3, (5, 1)))).astype(np.float32)
    got = unpack(packer(form).pack(matrix_of(torch.from_numpy(values)))).numpy()
    for start in range(0, inputs, QUANTISED[form]):
        group, rounded = values[:, start : start + QUANTISED[form]], got[:, start : start + QUANTISED[form]]
        largest = np.abs(group).max(1, keepdims=True)
        step = np.ptp(group, axis=1, keepdims=True) / 15 if form.startswith("q4") else largest / 127
        slack = (
            largest * 2.0**-10 + 2.0**-18
        )  # scale and minimum are halves; the second: of those that are no normal ones
        assert (np.abs(rounded - group) <= step / 2 + slack).all(), start


@pytest.mark.parametrize("form", QUANTISED)
def test_rows_without_spread_are_kept(form: str) -> None:
    values = torch.zeros(6, 70)
    values[1], values[2], values[3] = 1.0, -0.5, 2.0**-20
    got = unpack(packer(form).pack(matrix_of(values)))
    torch.testing.assert_close(got, values, rtol=1e-3, atol=2e-6)
    assert not got[0].any()


def test_a_form_of_its_own_is_one_of_the_known(rng: torch.Generator) -> None:
    matrix = matrix_of(torch.randn(4, 32, generator=rng))
    for form in ("stored", "q5"):
        with pytest.raises(ValueError, match="a weight has no form"):
            packer().pack(matrix, form=form)
    rounded = packer().pack(matrix, form="bf16").data
    assert torch.equal(rounded, dense(matrix).bfloat16().float()), "rounded to the form, held in the compute dtype"


@pytest.mark.parametrize("form", [None, *QUANTISED])
def test_a_table_is_looked_up_and_is_its_own_head(rng: torch.Generator, form: str | None) -> None:
    table = packer().pack_table(matrix_of(torch.randn(31, 1040, generator=rng)), form=form)
    assert isinstance(table, Weight)
    values, ids = unpack(table), torch.tensor([30, 0, -1])
    for kind in (torch.int64, torch.int32):
        rows = embed(table, ids.to(kind))
        assert torch.equal(rows[:2], values[[30, 0]])
        assert not rows[2].any(), "padding"
    assert packer().tied_head(table) is table
