from __future__ import annotations

import pytest
import torch

from paceline.kernels.backend import Ops


@pytest.mark.parametrize("rows", [[], [2], [4, 0, 4]])
def test_keeps_the_rows_asked_for(ops: Ops, rng: torch.Generator, rows: list[int]) -> None:
    x = torch.randn(5, 3, generator=rng)
    assert torch.equal(ops.select(x, torch.tensor(rows, dtype=torch.int64)), x[rows])
