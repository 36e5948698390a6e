"""What surrounds the library's products: the norm and what follows, over rows longer and shorter than a block."""

from __future__ import annotations

import pytest
import torch

from paceline.kernels.gpu.products import finish, normalise
from paceline.kernels.linear import Norm

TOLERANCE = {torch.float32: 1e-6, torch.float16: 2e-3}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("width", [7, 1024, 1100])
def test_rows_are_normalised(rng: torch.Generator, width: int, dtype: torch.dtype) -> None:
    x, weight = torch.randn(3, width, generator=rng).to(dtype), torch.randn(width, generator=rng)
    x[1] = 0
    got = normalise(x, Norm(weight, 1e-5))
    assert got.dtype == dtype
    wanted = x.double() * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + 1e-5) * weight.double()
    torch.testing.assert_close(got.double(), wanted, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("last", ["plain", "gate", "silu"])
def test_what_follows_a_product(rng: torch.Generator, last: str, dtype: torch.dtype) -> None:
    """A sigmoid of large numbers is 0 or 1; nothing overflows on the way."""
    for outputs in (7, 1100):
        y = torch.randn(2, outputs * (2 if last == "gate" else 1), generator=rng).to(dtype)
        y[0, :2] = torch.tensor([-500.0, 500.0])
        residual = torch.randn(2, outputs, generator=rng).to(dtype)
        for added in (None, residual):
            got = finish(y, added, dtype, gate=last == "gate", silu=last == "silu")
            wide = y.double()
            first = wide[:, :outputs]
            wanted = first if last == "plain" else first * torch.sigmoid(first)
            wanted = wanted * wide[:, outputs:] if last == "gate" else wanted
            wanted = wanted if added is None else wanted + added.double()
            assert got.dtype == dtype
            torch.testing.assert_close(got.double(), wanted, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
