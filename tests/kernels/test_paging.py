from __future__ import annotations

import pytest

from paceline.kernels.paging import BLOCK_SIZE, slots_of


@pytest.mark.parametrize("first", [0, 5, 15, 16, 31])
@pytest.mark.parametrize("count", [0, 1, 11, 16, 17, 40])
def test_a_slot_lies_in_its_position_s_block(first: int, count: int) -> None:
    blocks = [7, 2, 9, 0, 4]
    expected = [blocks[at // BLOCK_SIZE] * BLOCK_SIZE + at % BLOCK_SIZE for at in range(first, first + count)]
    assert slots_of(blocks, first, count) == expected
