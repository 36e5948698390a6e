from __future__ import annotations

import itertools
from functools import partial

import pytest
import torch
from matrices import dense, matrix_of
from stored_parts import Stack

from paceline.kernels.backend import WEIGHTS, Ops
from paceline.kernels.linear import Norm, float_pieces, reference

SHAPES = [(1, 8, 16), (2, 33, 6), (5, 80, 24), (17, 64, 192), (70, 7, 2)]  # rows, K, N
EXTRAS = list(itertools.product(*[(False, True)] * 3, ("plain", "gate", "silu")))  # norm, bias, residual
CPU = torch.device("cpu")
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 4e-2}


def expected(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    norm: Norm | None,
    residual: torch.Tensor | None,
    last: str,
) -> torch.Tensor:
    """The contract in float64, element by element formulas."""
    x, weight = x.double(), weight.double()
    if norm is not None:
        x = x / (x.pow(2).sum(-1, keepdim=True) / x.shape[-1] + norm.eps).sqrt() * norm.weight.double()
    y = torch.einsum("rk,nk->rn", x, weight)
    if bias is not None:
        y = y + bias.double()
    if last == "gate":
        half = y.shape[1] // 2
        y = y[:, :half] / (1 + (-y[:, :half]).exp()) * y[:, half:]
    if last == "silu":
        y = y / (1 + (-y).exp())
    return y if residual is None else y + residual.double()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("rows", "k", "n"), SHAPES)
def test_equals_float64_with_every_extra(
    ops: Ops, rng: torch.Generator, rows: int, k: int, n: int, dtype: torch.dtype
) -> None:
    if ops.name == "triton" and dtype == torch.bfloat16:
        pytest.skip("interpreted, Triton multiplies bfloat16 wrongly")

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=rng).to(dtype)

    # The reference keeps weights in its own dtype, which on the CPU is float32.
    pack = partial(reference.pack, dtype=dtype, device=CPU) if ops.name == "reference" else ops.pack
    for normed, biased, summed, last in EXTRAS:
        gated = last == "gate"
        if gated and biased and ops.name == "native":
            continue  # no model we read has both, and packing refuses it
        x, weight = random(rows, k), random(n, k) / k**0.5
        bias = random(n).float() if biased else None
        norm = Norm(random(k), 1e-2) if normed else None
        residual = random(rows, n // 2 if gated else n) if summed else None
        before = [None if tensor is None else tensor.clone() for tensor in (x, weight, bias, residual)]
        packed = pack(matrix_of(weight), None if bias is None else bias.numpy(), gate=gated)
        y = ops.linear(x, packed, norm=norm, residual=residual, gate=gated, silu=last == "silu")
        assert y.dtype == dtype
        torch.testing.assert_close(
            y.double(),
            expected(x, weight, bias, norm, residual, last),
            atol=TOLERANCE[dtype],
            rtol=TOLERANCE[dtype],
            msg=lambda text, extras=(normed, biased, summed, last): f"norm, bias, residual, last = {extras}: {text}",
        )
        for tensor, copy in zip((x, weight, bias, residual), before, strict=True):
            assert tensor is None or torch.equal(tensor, copy), "an input was changed"


def test_a_gate_and_a_silu_exclude_each_other(ops: Ops) -> None:
    weight = ops.pack(matrix_of(torch.ones(32, 4)), gate=True)
    with pytest.raises(ValueError, match="a gated result has no silu of its own"):
        ops.linear(torch.zeros(1, 4), weight, gate=True, silu=True)


@pytest.mark.parametrize("form", WEIGHTS[1:])
def test_a_weight_may_have_a_form_of_its_own(ops: Ops, rng: torch.Generator, form: str) -> None:
    """The reference ignores it; elsewhere values are rounded to it, and read by every op as they are."""
    values, x = torch.randn(48, 64, generator=rng), torch.randn(3, 64, generator=rng)
    y = ops.linear(x, ops.pack(matrix_of(values), form=form))
    rows = ops.embed(ops.pack_table(matrix_of(values), form=form), torch.tensor([0, 47]))
    rounded = 0.0 if ops.name == "reference" else {"q4": 0.2, "q8": 0.02, "bf": 8e-3, "f1": 1e-3, "f3": 0.0}[form[:2]]
    for got, want in ((y, x @ values.T), (rows, values[[0, 47]])):
        error = ((got - want).square().mean() / want.square().mean()).sqrt()
        assert rounded / 100 <= error <= 1.5 * rounded + 1e-5


def test_norm_survives_a_row_of_zeros(ops: Ops) -> None:
    y = ops.linear(torch.zeros(1, 4), ops.pack(matrix_of(torch.ones(2, 4))), norm=Norm(torch.ones(4), 1e-6))
    assert torch.equal(y, torch.zeros(1, 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_matrix_in_memory_is_read_in_pieces(rng: torch.Generator, dtype: torch.dtype) -> None:
    values = torch.randn(9, 5, generator=rng).to(dtype)
    for rows in (1, 4, 9, 100):
        assert torch.equal(dense(matrix_of(values), rows), values.float())
    assert matrix_of(values).raw().tobytes() == values.view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_reference_reads_what_lies_in_several_parts(
    rng: torch.Generator, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    """Pieces end where a part ends: none is larger than asked for."""
    parts = [torch.randn(rows, 3, generator=rng) for rows in (7, 2, 4)]
    stack = Stack(list(map(matrix_of, parts)))
    assert [len(piece) for piece in float_pieces(stack, 4)] == [4, 3, 2, 4]
    monkeypatch.setattr(reference, "_PIECE", 4)
    got = reference.read(stack, dtype, CPU)
    assert torch.equal(got, torch.cat(parts).to(dtype))
    assert got.dtype == dtype
