from __future__ import annotations

import pytest
import torch
from matrices import matrix_of

from paceline.kernels.backend import Ops


@pytest.mark.parametrize("rows", [1, 2, 70])
def test_rows_are_the_table_at_the_ids(ops: Ops, rng: torch.Generator, rows: int) -> None:
    table = torch.randn(31, 7, generator=rng)
    ids = torch.randint(31, (rows,), generator=rng)
    ids[0], ids[-1] = 0, 30
    found = ops.embed(ops.pack_table(matrix_of(table)), ids)
    assert found.shape == (rows, 7)
    for row, token in zip(found, ids.tolist(), strict=True):
        assert torch.equal(row, table[token])


def test_a_tied_head_multiplies_by_the_table(ops: Ops, rng: torch.Generator) -> None:
    table, x = torch.randn(31, 7, generator=rng), torch.randn(3, 7, generator=rng)
    head = ops.tied_head(ops.pack_table(matrix_of(table)))
    torch.testing.assert_close(ops.linear(x, head).double(), x.double() @ table.double().T, atol=1e-5, rtol=1e-5)
