"""Triton's `linear` against float64, and the bits of a row whatever stands beside it."""

from __future__ import annotations

import pytest
import torch
from matrices import matrix_of

from paceline.kernels.embed.triton_impl import unpack
from paceline.kernels.gpu.packing import Packer, Weight
from paceline.kernels.linear import Norm, triton_impl
from paceline.kernels.linear.triton_impl import linear

CPU = torch.device("cpu")
TOLERANCE = {torch.float32: 2e-5, torch.float16: 4e-3}
FORMS = ["stored", "q4", "q8", "q4_128", "q8_128"]
EXTRAS = [  # norm, bias, residual, what comes last, wide
    (False, False, False, "plain", False),
    (True, True, False, "gate", False),
    (False, True, True, "gate", True),
    (True, False, True, "silu", False),
    (False, True, False, "silu", True),
    (True, True, True, "plain", True),
    (True, False, True, "gate", False),
    (False, True, True, "plain", False),
]


def packed(rng: torch.Generator, form: str, n: int, k: int, dtype: torch.dtype, bias: bool = False) -> Weight:
    values = torch.randn(n, k, generator=rng) / k**0.5
    offsets = torch.randn(n, generator=rng).numpy() if bias else None
    return Packer(form, dtype, CPU).pack(matrix_of(values), offsets)


def expected(
    x: torch.Tensor, weight: Weight, norm: Norm | None, residual: torch.Tensor | None, last: str
) -> torch.Tensor:
    x = x.double()
    if norm is not None:
        x = x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight.double()
    y = x @ unpack(weight).double().T
    if weight.bias is not None:
        y = y + weight.bias.double()
    if last == "gate":
        first, second = y.chunk(2, -1)
        y = first / (1 + (-first).exp()) * second
    if last == "silu":
        y = y / (1 + (-y).exp())
    return y if residual is None else y + residual.double()


def check(
    rng: torch.Generator,
    weight: Weight,
    rows: int,
    dtype: torch.dtype,
    extras: tuple[bool, bool, str, bool],
    *,
    exact: bool = False,
) -> None:
    normed, summed, last, wide = extras
    x = torch.randn(rows, weight.inputs, generator=rng).to(dtype)
    norm = Norm(torch.rand(weight.inputs, generator=rng) + 0.5, 1e-2) if normed else None
    width = weight.outputs // 2 if last == "gate" else weight.outputs
    residual = torch.randn(rows, width, generator=rng).to(dtype) if summed else None
    y = linear(
        x, weight, norm=norm, residual=residual, gate=last == "gate", silu=last == "silu", wide=wide, exact=exact
    )
    assert y.dtype == (torch.float32 if wide else dtype)
    torch.testing.assert_close(
        y.double(), expected(x, weight, norm, residual, last), atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype]
    )


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(("rows", "form"), [(3, "stored"), (2, "q8"), (65, "q4")])
def test_equals_float64_with_every_extra(rng: torch.Generator, rows: int, form: str, dtype: torch.dtype) -> None:
    """By the kernel, and by the library for more rows than it takes."""
    weights = [packed(rng, form, 6, 96, dtype, bias) for bias in (False, True)]
    for normed, biased, summed, last, wide in EXTRAS:
        check(rng, weights[biased], rows, dtype, (normed, summed, last, wide))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_equals_float64_over_odd_shapes(rng: torch.Generator, form: str, dtype: torch.dtype) -> None:
    for rows, n, k in ((1, 40, 8), (2, 6, 33), (16, 17, 72), (17, 18, 320), (64, 2, 64), (200, 2, 72)):
        check(rng, packed(rng, form, n, k, dtype), rows, dtype, (True, True, "plain", False))


@pytest.mark.parametrize("form", ["stored", "q4", "q8"])
def test_many_outputs_take_wide_tiles(rng: torch.Generator, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a device that two tiles keep busy."""
    monkeypatch.setattr(triton_impl, "_processors", lambda device: 2)
    for n in (132, 68):
        check(rng, packed(rng, form, n, 64, torch.float32), 1, torch.float32, (True, False, "gate", True))


@pytest.mark.parametrize(
    ("form", "dtype"),
    [("stored", torch.float32), ("stored", torch.float16), ("q4", torch.float16), ("q8", torch.float32)],
)
def test_a_row_has_the_same_bits_in_every_company(rng: torch.Generator, form: str, dtype: torch.dtype) -> None:
    weight = packed(rng, form, 18, 264, dtype)
    norm = Norm(torch.rand(264, generator=rng) + 0.5, 1e-5)
    x = torch.randn(200, 264, generator=rng).to(dtype)
    x[5] = 1e3  # far from its neighbours
    residual = torch.randn(200, 9, generator=rng).to(dtype)
    alone = torch.cat(
        [linear(x[i : i + 1], weight, norm=norm, residual=residual[i : i + 1], gate=True, exact=False) for i in (0, 63)]
    )
    ordered = linear(x, weight, norm=norm, residual=residual, gate=True, exact=True)
    assert torch.equal(ordered[[0, 63]], alone)
    for rows in (2, 17, 64):
        places = torch.randperm(200, generator=rng)[:rows]
        y = linear(x[places], weight, norm=norm, residual=residual[places], gate=True, exact=False)
        assert torch.equal(y, ordered[places]), rows


def test_nothing_is_made_of_no_rows(rng: torch.Generator) -> None:
    weight = packed(rng, "q4", 8, 32, torch.float32)
    assert linear(torch.empty(0, 32), weight, exact=False).shape == (0, 8)


def test_norm_survives_zeros_and_a_gate_large_numbers() -> None:
    ones = Packer("stored", torch.float32, CPU).pack(matrix_of(torch.ones(2, 4)))
    zeros = linear(torch.zeros(1, 4), ones, norm=Norm(torch.ones(4), 1e-6), exact=False)
    assert torch.equal(zeros, torch.zeros(1, 2))
    for rows in (1, 65):
        large = linear(torch.full((rows, 4), -100.0), ones, gate=True, exact=False)
        assert torch.equal(large, torch.zeros(rows, 1))


def test_a_gate_and_a_silu_exclude_each_other(rng: torch.Generator) -> None:
    with pytest.raises(ValueError, match="a gated result has no silu of its own"):
        linear(torch.zeros(1, 32), packed(rng, "q8", 8, 32, torch.float32), gate=True, silu=True, exact=False)
