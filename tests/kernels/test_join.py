from __future__ import annotations

import torch

from paceline.kernels.join.reference import join


def test_parts_stand_side_by_side_or_below_one_another(rng: torch.Generator) -> None:
    """As many rows as there are, of several widths; below: a row's parts in turn."""
    for rows, widths in ((1, [3]), (5, [1, 7, 64]), (33, [4] * 6)):
        parts = [torch.randn(rows, width, generator=rng).half() for width in widths]
        joined = join(parts)
        assert joined.dtype == torch.float16
        for row in range(rows):
            assert joined[row].tolist() == [value for part in parts for value in part[row].tolist()]
        if len(set(widths)) == 1:
            below = join(parts, below=True)
            assert below.shape == (rows * len(parts), widths[0])
            for i, part in enumerate(parts):
                assert torch.equal(below[i :: len(parts)], part)


def test_parts_of_several_types_keep_their_values() -> None:
    tokens = torch.tensor([[0, 2**24, 128_255]], dtype=torch.int32)
    states = torch.tensor([[0.1, -3.0]]).bfloat16()
    joined = join([tokens, torch.tensor([[0.3]]), states])
    assert joined.dtype == torch.float32
    assert joined[:, :3].int().tolist() == tokens.tolist()
    assert torch.equal(joined[:, 3:], torch.cat((torch.tensor([[0.3]]), states.float()), 1))
