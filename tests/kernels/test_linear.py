from __future__ import annotations

import itertools

import pytest
import torch

from paceline.kernels.backend import Ops
from paceline.kernels.linear import Norm, TensorMatrix

SHAPES = [(1, 8, 16), (2, 33, 6), (5, 80, 24), (17, 64, 192), (70, 7, 2)]  # rows, K, N
EXTRAS = list(itertools.product((False, True), repeat=4))  # norm, bias, residual, gate
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 4e-2}


def expected(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    norm: Norm | None,
    residual: torch.Tensor | None,
    gate: bool,
) -> torch.Tensor:
    """The contract in float64, element by element formulas."""
    x, weight = x.double(), weight.double()
    if norm is not None:
        x = x / (x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + norm.eps).sqrt() * norm.weight.double()
    y = torch.einsum("rk,nk->rn", x, weight)
    if bias is not None:
        y = y + bias.double()
    if gate:
        half = y.shape[1] // 2
        y = y[:, :half] / (1 + (-y[:, :half]).exp()) * y[:, half:]
    return y if residual is None else y + residual.double()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("rows", "k", "n"), SHAPES)
def test_equals_float64_with_every_extra(
    ops: Ops, rng: torch.Generator, rows: int, k: int, n: int, dtype: torch.dtype
) -> None:
    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=rng).to(dtype)

    for normed, biased, summed, gated in EXTRAS:
        if gated and biased and ops.name == "native":
            continue  # no model we read has both, and packing refuses it
        x, weight = random(rows, k), random(n, k) / k**0.5
        bias = random(n) if biased else None
        norm = Norm(random(k), 1e-2) if normed else None
        residual = random(rows, n // 2 if gated else n) if summed else None
        before = [None if tensor is None else tensor.clone() for tensor in (x, weight, bias, residual)]
        y = ops.linear(x, ops.pack(TensorMatrix(weight), bias, gate=gated), norm=norm, residual=residual, gate=gated)
        assert y.dtype == dtype
        torch.testing.assert_close(
            y.double(),
            expected(x, weight, bias, norm, residual, gated),
            atol=TOLERANCE[dtype],
            rtol=TOLERANCE[dtype],
            msg=lambda text, extras=(normed, biased, summed, gated): f"norm, bias, residual, gate = {extras}: {text}",
        )
        for tensor, copy in zip((x, weight, bias, residual), before, strict=True):
            assert tensor is None or torch.equal(tensor, copy), "an input was changed"


def test_norm_survives_a_row_of_zeros(ops: Ops) -> None:
    y = ops.linear(torch.zeros(1, 4), ops.pack(TensorMatrix(torch.ones(2, 4))), norm=Norm(torch.ones(4), 1e-6))
    assert torch.equal(y, torch.zeros(1, 2))
