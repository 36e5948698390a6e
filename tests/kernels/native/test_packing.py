"""Packed weights hold what a checkpoint stores, bit for bit; where they are rounded, they are rounded well."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from matrices import matrix_of
from native_ops import FLOATING, FORMATS, QUANTISED, pack, unpacked
from numpy.typing import NDArray
from stored_parts import Part, Stack, stored

from paceline.kernels.native import packing
from paceline.kernels.native.packing import Packer
from paceline.kernels.native.store import MemoryStore

LOSSLESS = {"Q4_0": "q4", "Q4_1": "q4", "Q8_0": "q8", "F32": "f32", "F16": "f16", "BF16": "bf16"}


@pytest.mark.parametrize("wild", [False, True])
@pytest.mark.parametrize("kind", LOSSLESS)
def test_stored_values_come_out_bit_for_bit(module: ModuleType, kind: str, wild: bool) -> None:
    for rows, columns in ((1, 32), (16, 64), (17, 96), (31, 160), (70, 576), (33, 1536)):
        matrix = Stack([stored(kind, rows, columns, wild=wild)])
        weight = pack(module, matrix)
        assert np.array_equal(unpacked(module, weight), matrix.values()), (rows, columns)
        assert weight.handle.outputs == rows


@pytest.mark.parametrize("kind", LOSSLESS)
def test_fused_gated_and_reordered_values_come_out_bit_for_bit(
    module: ModuleType, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """q, k, v as one weight, with rows in another order than stored; gates whose halves fill no block; small pieces."""
    order = np.random.default_rng(1).permutation(48)
    shuffled = stored(kind, 48, 64, 1)
    fused = Stack([Part("q", kind, shuffled.bytes_[order], 64), stored(kind, 16, 64, 2), stored(kind, 19, 64, 3)])
    for piece in (4096, 1, 7, 16):
        monkeypatch.setattr(packing, "_PIECE", piece)
        assert np.array_equal(unpacked(module, pack(module, fused)), fused.values())
        for rows in (1, 15, 16, 17, 40, 64):
            gated = Stack([stored(kind, rows, 64, 4), stored(kind, rows, 64, 5)])
            weight = pack(module, gated, gate=True)
            assert weight.width == rows
            assert np.array_equal(unpacked(module, weight, gate=True), gated.values()), (piece, rows)


def test_parts_stored_differently_keep_their_values(module: ModuleType) -> None:
    mixed = Stack([stored("Q4_1", 20, 64), stored("Q8_0", 9, 64), stored("F16", 3, 64)])
    assert np.array_equal(unpacked(module, pack(module, mixed)), mixed.values())


def test_a_request_to_round_spares_what_is_stored_that_way(module: ModuleType) -> None:
    """Rounding Q4_1 values to q4 again would lose some: they are repacked instead."""
    exact, other = Stack([stored("Q4_1", 40, 64, wild=True)]), Stack([stored("Q8_0", 40, 64)])
    assert np.array_equal(unpacked(module, pack(module, exact, "q4")), exact.values())
    for matrix in (exact, other):
        assert np.array_equal(unpacked(module, pack(module, matrix, "f32")), matrix.values())
    error = np.abs(unpacked(module, pack(module, other, "q4")) - other.values())
    assert 0 < error.max() < 0.4


@pytest.mark.parametrize("inputs", [1, 31, 32, 33, 100, 128, 129, 576])
@pytest.mark.parametrize("fmt", QUANTISED)
def test_rounding_errs_by_half_a_step_at_most(module: ModuleType, fmt: str, inputs: int) -> None:
    """A step is the spread of a group over its 15 intervals, or its largest magnitude over 127, as halves round it."""
    random = np.random.default_rng(inputs)
    values = (random.standard_normal((37, inputs)) * np.exp(random.uniform(-6, 3, (37, 1)))).astype(np.float32)
    got = unpacked(module, pack(module, torch.from_numpy(values), fmt))
    for start in range(0, inputs, QUANTISED[fmt]):
        group, rounded = values[:, start : start + QUANTISED[fmt]], got[:, start : start + QUANTISED[fmt]]
        low, high = group.min(1, keepdims=True), group.max(1, keepdims=True)
        largest = np.abs(group).max(1, keepdims=True)
        step = (high - low) / 15 if fmt.startswith("q4") else largest / 127
        # Scale and minimum are halves, 11 bits: at the end of a group that shifts a value by a little more.
        slack = largest * 2.0**-10 + 2.0**-18  # the second: of small groups, whose scale is no normal half
        assert (np.abs(rounded - group) <= step / 2 + slack).all(), start


@pytest.mark.parametrize(("fmt", "most"), [("q4", 0.085), ("q4_128", 0.115), ("q8", 0.0065), ("q8_128", 0.008)])
def test_rounding_of_normal_weights_is_as_good_as_the_format(module: ModuleType, fmt: str, most: float) -> None:
    values = np.random.default_rng(7).standard_normal((64, 1024), np.float32)
    error = unpacked(module, pack(module, torch.from_numpy(values), fmt)) - values
    rms = np.sqrt((error**2).mean())
    assert most / 2 < rms < most
    assert abs(error.mean()) < 3 * rms / np.sqrt(error.size) + 1e-4


@pytest.mark.parametrize("fmt", QUANTISED)
def test_rows_without_spread_are_kept(module: ModuleType, fmt: str) -> None:
    values = torch.zeros(6, 70)
    values[1], values[2], values[3] = 1.0, -0.5, 2.0**-20
    values[4, 3] = 1.0
    got = unpacked(module, pack(module, values, fmt))
    np.testing.assert_allclose(got, values.numpy(), rtol=1e-3, atol=2e-6)
    assert not got[0].any()


@pytest.mark.parametrize("fmt", FLOATING)
def test_floats_are_rounded_as_torch_rounds_them(module: ModuleType, fmt: str) -> None:
    values = torch.randn(35, 77) * torch.logspace(-12, 4, 77)
    values[0, :8] = torch.tensor([0.0, -0.0, 7e4, -7e4, 3.4e38, torch.inf, -torch.inf, 1 + 2**-9])
    values[1, 0] = torch.nan
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[fmt]
    got = unpacked(module, pack(module, values, fmt))
    assert np.array_equal(got, values.to(dtype).float().numpy(), equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_in_memory_keep_their_dtype(module: ModuleType, dtype: torch.dtype) -> None:
    values = torch.randn(21, 50).to(dtype)
    weight = pack(module, values)
    assert np.array_equal(unpacked(module, weight), values.float().numpy())
    wide = module.packed_bytes(module.Format.f32, 21, 50)
    narrow = module.packed_bytes(module.Format.f16, 21, 50)
    assert narrow * 2 == wide


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q8_0"])
def test_all_modules_pack_the_same_bytes(kind: str) -> None:
    """The file of packed weights serves whichever instruction set the next start chooses."""
    from paceline.kernels.native import isa

    class Keeping(MemoryStore):
        def array(self, key: str, size: int, fill: Any) -> NDArray[np.uint8]:
            self.made = super().array(key, size, fill)
            return self.made

    packed = []
    for name in isa.supported():
        module = isa.load(name)
        for weights, matrix in (
            ("stored", Stack([stored(kind, 40, 96)])),
            ("q4", matrix_of(torch.linspace(-1, 1, 999).view(9, 111))),
            ("q8_128", matrix_of(torch.linspace(-1, 1, 999).view(9, 111))),
        ):
            store = Keeping()
            Packer(module, store, weights).pack(matrix)
            packed.append(store.made)
    for index, data in enumerate(packed):
        assert np.array_equal(data, packed[index % 3])


def test_a_form_of_its_own_counts_and_keeps_a_weight_out_of_the_store(module: ModuleType) -> None:
    class Refusing(MemoryStore):
        def array(self, key: str, size: int, fill: Any) -> NDArray[np.uint8]:
            raise AssertionError(f"{key} was stored")

    matrix = Stack([stored("Q8_0", 40, 64)])
    packer = Packer(module, Refusing(), "q4")
    for form in FORMATS:
        weight = packer.pack(matrix, form=form)
        assert np.array_equal(unpacked(module, weight), unpacked(module, pack(module, matrix, form)))
    biased = packer.pack(matrix, np.ones(40, np.float32), form="q8")
    assert np.array_equal(unpacked(module, biased), matrix.values()), "repacked, not rounded"
    assert packer.pack(matrix, gate=True, form="q8").width == 20
    with pytest.raises(AssertionError, match="was stored"):
        packer.pack(matrix)
    for wrong in ("stored", "q3", ""):
        with pytest.raises(ValueError, match=f"no form '{wrong}'; choose one of q4, .*f32$"):
            packer.pack(matrix, form=wrong)


def test_a_bias_that_does_not_fit_is_refused(module: ModuleType) -> None:
    with pytest.raises(ValueError, match="bias must have 8 entries"):
        pack(module, torch.ones(8, 4), bias=np.ones(7, np.float32))
    with pytest.raises(ValueError, match="a gated weight has no bias"):
        pack(module, torch.ones(8, 4), bias=np.ones(8, np.float32), gate=True)
