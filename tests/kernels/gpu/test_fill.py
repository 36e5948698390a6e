from __future__ import annotations

import pytest
import torch

from paceline.kernels.fill import reference
from paceline.kernels.fill.triton_impl import fill


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("width", [1, 7, 1024, 2500])
def test_equals_the_reference(width: int, dtype: torch.dtype, rng: torch.Generator) -> None:
    """Nothing is read for a row that keeps its own, nor of its own for one that takes another's."""
    sources = torch.tensor([-1, 2, -1, 0, 1, 1], dtype=torch.int32)
    given, found = torch.randn(6, width, generator=rng), torch.randn(3, width, generator=rng).to(dtype)
    given[sources >= 0] = torch.nan
    assert torch.equal(fill(given, found, sources), reference.fill(given, found, sources))


def test_ids_are_taken_from_a_column(rng: torch.Generator) -> None:
    sources = torch.tensor([-1, 0, 1, -1, 2], dtype=torch.int32)
    ids = torch.arange(5, dtype=torch.int32)
    for tokens in (torch.randint(0, 2**17, (3, 4), generator=rng), torch.randint(0, 2**17, (4, 3), generator=rng).t()):
        filled = fill(ids, tokens.int()[:, 0], sources)
        assert filled.dtype == torch.int32
        assert filled.tolist() == [0, *tokens[:2, 0].tolist(), 3, int(tokens[2, 0])]
