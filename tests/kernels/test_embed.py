from __future__ import annotations

import pytest
import torch

from paceline.kernels.backend import Ops


@pytest.mark.parametrize("rows", [1, 2, 70])
def test_rows_are_the_table_at_the_ids(ops: Ops, rng: torch.Generator, rows: int) -> None:
    table = torch.randn(31, 7, generator=rng)
    ids = torch.randint(31, (rows,), generator=rng)
    ids[0], ids[-1] = 0, 30
    found = ops.embed(table, ids)
    assert found.shape == (rows, 7)
    for row, token in zip(found, ids.tolist(), strict=True):
        assert torch.equal(row, table[token])
