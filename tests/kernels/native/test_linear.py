"""`linear` in every format of weights and activations against float64, and its bits with other rows and threads."""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from native_ops import (
    FLOATING,
    FORMATS,
    GROUP,
    QUANTISED,
    Floats,
    linear,
    outliers,
    pack,
    rms_normed,
    rounded_rows,
    unpacked,
    with_outliers,
)

from paceline.kernels.backend import ACTIVATIONS

SHAPES = [(1, 32, 16), (2, 33, 6), (3, 96, 7), (5, 80, 24), (9, 7, 2), (17, 64, 192), (64, 129, 33), (130, 161, 40)]
EXTRAS = list(itertools.product((False, True), repeat=3))  # norm, residual, gate
# Weights, activations; those are not rounded for weights that are floats.
PRECISIONS = [*itertools.product(QUANTISED, ACTIVATIONS), *((fmt, "mixed") for fmt in FLOATING)]


def silu(x: Floats) -> Any:
    return x / (1 + np.exp(-x))


def expected(
    x: Any, weight: Floats, bias: Floats | None = None, residual: Floats | None = None, last: str = "plain"
) -> Any:
    """The contract in float64; x is normalised and rounded already."""
    y = x.astype(np.float64) @ weight.astype(np.float64).T
    if bias is not None:
        y = y + bias
    if last == "gate":
        y = silu(y[:, : y.shape[1] // 2]) * y[:, y.shape[1] // 2 :]
    if last == "silu":
        y = silu(y)
    return y if residual is None else y + residual


@pytest.mark.parametrize(("fmt", "activations"), PRECISIONS)
def test_equals_float64_of_the_rounded_values(
    module: ModuleType, pools: dict[int, Any], fmt: str, activations: str
) -> None:
    """Nothing is lost but what the formats round: with rounded operands the result is float64's."""
    random = np.random.default_rng(3)
    for index, ((rows, inputs, outputs), (normed, summed, gated)) in enumerate(itertools.product(SHAPES, EXTRAS)):
        last = "gate" if gated else ("plain", "silu")[index // 2 % 3 == 1]
        x, matrix = with_outliers(random, rows, inputs), random.standard_normal((outputs, inputs))
        if gated and outputs % 2:
            matrix = matrix[:-1]
        tensor = torch.from_numpy(matrix / inputs**0.5).float()
        biased = index % 2 == 0 and not gated
        bias = random.standard_normal(len(matrix), np.float32) if biased else None
        norm = random.random(inputs, np.float32) + 0.5 if normed else None
        width = len(matrix) // 2 if gated else len(matrix)
        residual = random.standard_normal((rows, width), np.float32) if summed else None
        weight = pack(module, tensor, fmt, bias, gate=gated)
        assert (weight.inputs, weight.width) == (inputs, width)

        y = linear(
            *(module, pools[1 + index % 3], x, weight),
            norm=norm,
            eps=1e-5,
            residual=residual,
            gate=gated,
            silu=last == "silu",
            activations=activations,
        )

        read = x if norm is None else rms_normed(x, norm, 1e-5)
        seen = rounded_rows(read, activations) if fmt in QUANTISED else read
        want = expected(seen, unpacked(module, weight, gate=gated), bias, residual, last)
        # After a norm the last bit of a row may differ from ours, and what lies at a half is then rounded the other
        # way: once in a while, a step of one input.
        step = np.abs(read).max() / 127 * np.abs(tensor.numpy()).max() if fmt in QUANTISED and normed else 0.0
        context = f"{(rows, inputs, outputs)}, norm, residual, last = {normed, summed, last}"
        np.testing.assert_allclose(y, want, rtol=2e-5, atol=3e-5 + step * (4 if gated else 1), err_msg=context)
        if step:
            assert np.median(np.abs(y - want)) < 1e-5 * (1 + np.abs(want).max()), context


TOLERANCE = {"q4": 0.16, "q4_128": 0.22, "q8": 0.02, "q8_128": 0.02, "f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}


@pytest.mark.parametrize("fmt", FORMATS)
def test_is_near_float64_of_the_given_values(module: ModuleType, pool: Any, fmt: str) -> None:
    """Relative to the size of the result, over a whole product: formats differ by orders of magnitude."""
    random = np.random.default_rng(4)
    x, matrix = random.standard_normal((16, 576), np.float32), random.standard_normal((200, 576), np.float32)
    weight = pack(module, torch.from_numpy(matrix), fmt)
    y, want = linear(module, pool, x, weight), x.astype(np.float64) @ matrix.T.astype(np.float64)
    error = np.sqrt(((y - want) ** 2).mean() / (want**2).mean())
    assert error < TOLERANCE[fmt]
    assert fmt in FLOATING or error > TOLERANCE[fmt] / 8, "a tolerance that says nothing"


@pytest.mark.parametrize("fmt", QUANTISED)
def test_more_bits_are_better(module: ModuleType, pool: Any, fmt: str) -> None:
    """On rows with outliers, against float64 of the rows as they are and the weights as packed."""
    random = np.random.default_rng(6)
    x, matrix = with_outliers(random, 16, 576), random.standard_normal((200, 576), np.float32)
    weight = pack(module, torch.from_numpy(matrix), fmt)
    want = x.astype(np.float64) @ unpacked(module, weight).T.astype(np.float64)
    errors = {}
    for activations in ACTIVATIONS:
        y = linear(module, pool, x, weight, activations=activations)
        errors[activations] = np.sqrt(((y - want) ** 2).mean() / (want**2).mean())
    assert errors["int8"] > 4 * errors["mixed"] > 80 * errors["int16"] > 0


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_row_has_the_same_bits_beside_any_others_and_on_any_threads(
    module: ModuleType, pools: dict[int, Any], fmt: str
) -> None:
    """Whatever the rows' tile and place in it, and at two places of the batch."""
    random = np.random.default_rng(5)
    inputs, outputs, most = 161, 90, 130
    x = with_outliers(random, most, inputs)
    residual = random.standard_normal((most, outputs), np.float32)
    matrix = torch.from_numpy(random.standard_normal((outputs, inputs), np.float32))
    norm = random.random(inputs, np.float32)
    for gated in (False, True):
        weight = pack(module, torch.cat((matrix, -matrix)) if gated else matrix, fmt, gate=gated)
        whole = linear(module, pools[1], x, weight, norm=norm, eps=1e-6, residual=residual, gate=gated)
        assert np.isfinite(whole).all()
        for rows in (*range(1, 31), 31, 32, 33, 63, 64, 65, 100, 127, 128, 129, most):
            first = (most - rows) * (rows % 2)
            part = slice(first, first + rows)
            y = linear(
                module, pools[1 + rows % 3], x[part], weight, norm=norm, eps=1e-6, residual=residual[part], gate=gated
            )
            assert np.array_equal(y, whole[part]), f"{rows} rows, gate {gated}"


@pytest.mark.parametrize(("fmt", "activations"), PRECISIONS)
def test_outliers_of_other_rows_change_no_bit(
    module: ModuleType, pools: dict[int, Any], fmt: str, activations: str
) -> None:
    """Rows that have no outlier, one, or one in every group, each alone and among the others.

    Up to a tile, up to what meets the weights together, and beyond.
    """
    random = np.random.default_rng(8)
    inputs, most = 160, 30
    groups = inputs // GROUP
    x = random.uniform(-1, 1, (most, inputs)).astype(np.float32)
    for row in range(most):
        for group in range(groups):
            if row % 3 == 1 or (row % 3 == 2 and row % groups == group):
                x[row, group * GROUP + row] = 10
    if activations == "mixed":
        assert (outliers(x).sum(1) == [(0, groups, 1)[row % 3] for row in range(most)]).all()
    weight = pack(module, torch.from_numpy(random.standard_normal((90, inputs), np.float32)), fmt)
    alone = np.concatenate([linear(module, pools[1], x[[row]], weight, activations=activations) for row in range(most)])
    for rows in range(1, most + 1):
        for chosen in (np.arange(rows), random.permutation(most)[:rows]):
            y = linear(module, pools[1 + rows % 3], x[chosen], weight, activations=activations)
            assert np.array_equal(y, alone[chosen]), chosen


@pytest.mark.parametrize(("fmt", "activations"), PRECISIONS)
def test_extreme_rows(module: ModuleType, pool: Any, fmt: str, activations: str) -> None:
    """Zeros, one large value among small ones, and magnitudes far from one."""
    inputs = 70
    rows = np.zeros((7, inputs), np.float32)
    rows[1] = 1e-30
    rows[2] = 1e30
    rows[3, 5] = 1000.0
    rows[4] = np.linspace(-1, 1, inputs, dtype=np.float32)
    rows[5, ::7] = -3.0
    rows[6] = np.linspace(1e-25, 2e-25, inputs)
    weight = pack(module, torch.linspace(-2, 2, 5 * inputs).view(5, inputs), fmt)
    y = linear(module, pool, rows, weight, activations=activations)
    seen = rounded_rows(rows, activations) if fmt in QUANTISED else rows
    want = expected(seen, unpacked(module, weight))
    assert not y[0].any()
    scale = np.abs(want).max(axis=1, keepdims=True) + 1e-37
    np.testing.assert_allclose(y / scale, want / scale, atol=2e-5)


def test_gating_survives_large_gates(module: ModuleType, pool: Any) -> None:
    """silu is 0 far below zero and the identity far above; nothing overflows on the way."""
    gates = np.array([-1e4, -200.0, -88.0, -20.0, -1.0, 0.0, 1.0, 20.0, 88.0, 200.0, 1e4], np.float32)
    matrix = torch.from_numpy(np.stack([gates, np.ones_like(gates)], 1).reshape(-1, 2)[:, :1])
    both = torch.cat((matrix, torch.ones_like(matrix)))
    y = linear(module, pool, np.ones((1, 1), np.float32), pack(module, both, gate=True), gate=True)
    with np.errstate(over="ignore"):
        want = silu(gates.astype(np.float64))
    np.testing.assert_allclose(y[0], want, rtol=1e-6, atol=1e-30)
