from __future__ import annotations

import pytest
import torch

from paceline.kernels.fill.reference import fill


@pytest.mark.parametrize("indices", [torch.int32, torch.int64])
def test_rows_that_wait_take_what_was_found_and_others_keep_their_own(indices: torch.dtype) -> None:
    sources = torch.tensor([-1, -1, 0, 1, -1, 2, -1], dtype=indices)
    ids, tokens = torch.arange(10, 17).to(indices), torch.tensor([[7, 1], [8, 2], [9, 3]], dtype=indices)
    assert fill(ids, tokens[:, 0], sources).tolist() == [10, 11, 7, 8, 14, 9, 16]
    features, hidden = torch.randn(7, 3), torch.randn(3, 3).bfloat16()
    filled = fill(features, hidden, sources)
    assert filled.dtype == torch.float32
    for row, source in enumerate(sources.tolist()):
        assert torch.equal(filled[row], features[row] if source < 0 else hidden[source].float())
